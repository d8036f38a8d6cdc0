"""The statistics windows of Guo and Zhou 2017, s. 2.2, from what was observed of a run.

The rows of a stream are those that left its upstream; how they divide over key groups is taken
from the work of the groups that received them. State is observed in bytes and counted in rows of
a fixed size, so that both costs of eq. 1 are in rows.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from penstock.fusion.graph import (
    OperatorGraph,
    OperatorStatistics,
    StreamStatistics,
    operator_graph,
)
from penstock.model.observation import ComponentObservation, Floats, Observation

MOST_WINDOWS = 10
STATE_ROW_BYTES = 100.0


def measured_graph(
    observations: Sequence[Observation],
    keys: Mapping[str, tuple[str, ...]],
    streams: Sequence[tuple[str | None, str]],
    stateful: frozenset[str],
) -> OperatorGraph | None:
    """The operator graph with its histograms; None while no row was seen.

    `keys` are those of all operators, empty where any partitioning will do; a stream from None
    comes from a source.
    """
    seen = [one for one in observations if any(o.arrival_rate_per_s > 0 for o in one.operators)]
    if not seen or not keys:
        return None
    parts = np.array_split(np.arange(len(seen)), min(MOST_WINDOWS, len(seen)))
    windows = [[seen[number] for number in part] for part in parts]
    groups = max((len(g) for one in seen for g in _groups(one).values()), default=1)
    return operator_graph(
        [
            OperatorStatistics(name, key, _state(name, windows, groups, stateful))
            for name, key in keys.items()
        ],
        [
            StreamStatistics(upstream, name, _load(upstream, name, windows, groups))
            for upstream, name in streams
        ],
    )


def _load(upstream: str | None, name: str, windows: list[list[Observation]], groups: int) -> Floats:
    """Rows of one stream in each window and key group."""
    made = np.zeros((len(windows), groups))
    for number, window in enumerate(windows):
        for one in window:
            by_name = {o.name: o for o in one.operators}
            if upstream is None:
                rate = by_name[name].arrival_rate_per_s if name in by_name else 0.0
            else:
                rate = by_name[upstream].emission_rate_per_s if upstream in by_name else 0.0
            rows = rate * one.period_s if np.isfinite(rate) else 0.0
            made[number] += rows * _shares(one, name, groups)
    return made


def _state(
    name: str, windows: list[list[Observation]], groups: int, stateful: frozenset[str]
) -> Floats | None:
    """Rows of state at the end of each window; a component's is divided among its operators."""
    if name not in stateful:
        return None
    made = np.zeros((len(windows), groups))
    for number, window in enumerate(windows):
        for one in window:
            home = _home(one, name)
            if home is None or home.key_groups is None:
                continue
            held = np.nan_to_num(home.key_groups.state_bytes)
            sharing = max(1, len(stateful & set(home.operators)))
            made[number, : len(held)] = held[:groups] / sharing / STATE_ROW_BYTES
    return made


def _shares(one: Observation, name: str, groups: int) -> Floats:
    home = _home(one, name)
    if home is not None and home.key_groups is not None and len(home.key_groups.load_s) == groups:
        load = np.nan_to_num(home.key_groups.load_s)
        if load.sum() > 0:
            return np.asarray(load / load.sum())
    return np.full(groups, 1.0 / groups)


def _home(one: Observation, name: str) -> ComponentObservation | None:
    return next((c for c in one.components if name in c.operators), None)


def _groups(one: Observation) -> dict[str, Floats]:
    return {c.name: c.key_groups.load_s for c in one.components if c.key_groups is not None}
