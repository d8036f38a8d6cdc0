"""The statistics windows of Guo and Zhou 2017, s. 2.2, from what was observed of a run.

The rows of a stream are those that left its upstream; how they divide over key groups is taken
from the work of the groups that received them. State is observed in bytes and counted in rows of
a fixed size, so that both costs of eq. 1 are in rows.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from penstock.fusion.graph import (
    OperatorGraph,
    OperatorStatistics,
    StreamStatistics,
    operator_graph,
)
from penstock.fusion.shuffles import Key, shuffled_streams, with_stateless
from penstock.model.observation import ComponentObservation, Floats, Observation

WINDOW_S = 60.0  # how often key groups are taken to be balanced anew
HORIZON_S = 600.0  # what a plan is priced over, whatever was seen of it
STATE_ROW_BYTES = 100.0

Edge = tuple[str, str]  # from a source where the first is no operator


@dataclass(frozen=True)
class MeasuredGraph:
    """What a topology shuffles: streams that fusing can save, and rows that no plan saves.

    Operators without a key are in the graph but have no streams there.
    """

    graph: OperatorGraph
    entering_rows: float
    slots: int  # processors that key groups can keep busy; 0 where unknown
    keys: Mapping[str, Key]
    edges: tuple[Edge, ...]

    def between(self, members: Sequence[str]) -> tuple[str, ...]:
        """Members of a component, with the operators without a key on the way between them."""
        return with_stateless(members, self.keys, self.edges)


def measured_graph(
    observations: Sequence[Observation],
    keys: Mapping[str, Key],
    edges: Sequence[Edge],
    stateful: frozenset[str],
    divided_once: frozenset[str] = frozenset(),
    exact: frozenset[str] = frozenset(),
) -> MeasuredGraph | None:
    """The operator graph with its histograms; None while no row was seen.

    `keys` are those of all operators: empty where any partitioning will do, None where that also
    hides how its rows were partitioned. `divided_once` are the nodes whose rows one shuffle can
    bring to several operators; `exact` are operators that part of their key does not divide.
    """
    seen = [one for one in observations if any(o.arrival_rate_per_s > 0 for o in one.operators)]
    if not seen or not keys:
        return None
    windows = _windows(seen)
    groups = max((len(g) for one in seen for g in _groups(one).values()), default=1)
    sources = {name: sum(d == name and u not in keys for u, d in edges) for name in keys}
    loads = {edge: _load(edge, keys, sources, windows, groups) for edge in dict.fromkeys(edges)}
    totals = {edge: float(load.sum()) for edge, load in loads.items()}
    streams = [
        StreamStatistics(one.kept_with, one.edge[1], loads[one.edge] * one.share)
        for one in shuffled_streams(keys, totals, divided_once)
    ]
    graph = operator_graph(
        [
            OperatorStatistics(
                name,
                key or (),
                _state(name, windows, groups, stateful),
                _measured_by(name, seen[-1], keys),
                name in exact,
            )
            for name, key in keys.items()
        ],
        streams,
    )
    entering = sum(stream.total_rows for stream in streams if stream.upstream is None)
    slots = min(groups, max(one.processors for one in seen))
    return MeasuredGraph(graph, entering, slots, keys, tuple(edges))


def _windows(seen: Sequence[Observation]) -> list[list[Observation]]:
    """The newest windows of fixed length, repeated until they fill the horizon.

    A plan is priced over the same time whether a run is young or old: of a steady stream neither
    rows nor state moved weigh more or less because it was watched longer.
    """
    parts: dict[int, list[Observation]] = {}
    for one in seen:
        parts.setdefault(int((one.at_s - seen[0].at_s) // WINDOW_S), []).append(one)
    count = round(HORIZON_S / WINDOW_S)
    newest = [parts[number] for number in sorted(parts)][-count:]
    return [newest[number % len(newest)] for number in range(count)]


def _load(
    edge: Edge,
    keys: Mapping[str, Key],
    sources: Mapping[str, int],
    windows: list[list[Observation]],
    groups: int,
) -> Floats:
    """Rows of one edge in each window and key group, at the rate that was seen in it."""
    upstream, name = edge
    made = np.zeros((len(windows), groups))
    for number, window in enumerate(windows):
        watched_s = sum(one.period_s for one in window)
        for one in window:
            by_name = {o.name: o for o in one.operators}
            if upstream in keys:
                rate = by_name[upstream].emission_rate_per_s if upstream in by_name else 0.0
            else:
                rate = by_name[name].arrival_rate_per_s if name in by_name else 0.0
                rate /= sources[name]
            rows = rate * WINDOW_S * one.period_s / watched_s if np.isfinite(rate) else 0.0
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


def _measured_by(name: str, one: Observation, keys: Mapping[str, Key]) -> tuple[str, ...] | None:
    """The key by which the work of an operator was divided: what its component's members share."""
    home = _home(one, name)
    if home is None or home.key_groups is None or not keys[name]:
        return None
    sharing = [set(key) for member in home.operators if (key := keys.get(member))]
    return tuple(sorted(set.intersection(*sharing)))


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
