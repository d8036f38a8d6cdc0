"""The monitoring window of AUTOSCALE as columns: one row per operator, one column a measurement.

Seed 002 ch.5 s.2: rows received in each measurement interval, rows pending at the end of the last
one, processing latency per row without waiting, parallelism degree. An iteration of the window
lasts Delta; estimates are for the next Delta.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from penstock.model.observation import Floats, Ints, Observation
from penstock.scaling.demand import excess_rows, gaps_of, last_service_times_s
from penstock.scaling.offered import served_rate_per_s
from penstock.scaling.policy import ScalingContext


@dataclass(frozen=True)
class OperatorWindows:
    """The windows of all operators, in one order; upstreams are places in that order."""

    names: tuple[str, ...]
    upstreams: tuple[tuple[int, ...], ...]
    duration_s: float  # Delta
    received_rows: Floats  # (operators, measurements), oldest first
    service_time_s: Floats  # (operators, measurements)
    pending_rows: Floats
    selectivity: Floats  # rows out for each row processed
    parallelism: Ints
    max_parallelism: Ints
    known: tuple[bool, ...]  # whether an estimate may rest on the row
    usable_cpu: Floats  # of one processor, for each task; see autoscale_plus

    @property
    def size(self) -> int:
        return len(self.names)


def operator_windows(context: ScalingContext, window_s: float) -> OperatorWindows | None:
    """The newest iteration of the window; None while there is none."""
    newest = context.newest
    if newest is None:
        return None
    past = [o for o in context.window if o.at_s > newest.at_s - window_s + 1e-9]
    seen = {component.name for o in past for component in o.components}
    names = tuple(sorted({*context.current.parallelism, *seen}))
    if not names:
        return None
    place = {name: i for i, name in enumerate(names)}
    parents: list[list[int]] = [[] for _ in names]
    for upstream, downstream in context.edges:
        if upstream in place and downstream in place:
            parents[place[downstream]].append(place[upstream])
    rates = _rates(context, past, place)
    services = _services(past, place, last_service_times_s(context.window))
    duration_s = sum(o.period_s for o in past)
    fresh = np.isfinite(rates[:, -1]) & (np.isfinite(services[:, -1]) | (rates[:, -1] == 0))
    if gaps_of(newest):
        fresh[:] = False
    running = context.current.parallelism
    return OperatorWindows(
        names=names,
        upstreams=tuple(tuple(sorted(set(row))) for row in parents),
        duration_s=duration_s,
        received_rows=filled(rates) * (duration_s / len(past)),
        service_time_s=filled(services),
        pending_rows=_pending(context, newest, names, rates),
        selectivity=_selectivity(past, names, parents, place),
        parallelism=np.array([max(1, running.get(name, 1)) for name in names], dtype=np.int64),
        max_parallelism=np.full(len(names), context.limits.max_processors, dtype=np.int64),
        known=tuple(bool(value) for value in fresh),
        usable_cpu=np.ones(len(names)),
    )


def filled(columns: Floats) -> Floats:
    """Gaps take the mean of what is known in their row; rows without any are zero."""
    known = np.isfinite(columns)
    count = known.sum(axis=1)
    total = np.where(known, columns, 0.0).sum(axis=1)
    mean = total / np.maximum(count, 1)
    return np.where(known, columns, mean[:, None])


def _rates(context: ScalingContext, past: Sequence[Observation], place: dict[str, int]) -> Floats:
    """Arrival rates; shared in time, the offered rate times each component's rows per row."""
    rates = np.full((len(place), len(past)), np.nan)
    for column, observation in enumerate(past):
        for component in observation.components:
            rates[place[component.name], column] = component.arrival_rate_per_s
    if context.sharing == "space":
        return rates
    offered = np.array([observation.arrival_rate_per_s for observation in past])
    with np.errstate(divide="ignore", invalid="ignore"):
        visits = np.where(offered > 0, rates / offered, np.nan)
    return np.where(offered == 0, 0.0, filled(visits) * offered)


def _services(past: Sequence[Observation], place: dict[str, int], last: dict[str, float]) -> Floats:
    services = np.full((len(place), len(past)), np.nan)
    for column, observation in enumerate(past):
        for component in observation.components:
            if component.service_time_s >= 0:
                services[place[component.name], column] = component.service_time_s
    for name, row in place.items():
        if math.isnan(services[row, -1]):
            services[row, -1] = last.get(name, math.nan)
    return services


def _pending(
    context: ScalingContext, newest: Observation, names: Iterable[str], rates: Floats
) -> Floats:
    if context.sharing == "space":
        waiting = {component.name: component.backlog_rows for component in newest.components}
        pending = np.array([waiting.get(name, 0.0) for name in names])
        return np.where(pending > 0, pending, 0.0)
    offered = newest.arrival_rate_per_s
    if not offered > 0:
        return np.full(len(rates), excess_rows(context, newest))
    visits = np.nan_to_num(rates[:, -1] / offered)
    return visits * excess_rows(context, newest)


def _selectivity(
    past: Sequence[Observation],
    names: Sequence[str],
    parents: Sequence[Sequence[int]],
    place: dict[str, int],
) -> Floats:
    """Rows out per row processed (seed 002 ch.5 eq. 7); from the downstreams where not measured."""
    processed, emitted = np.zeros(len(names)), np.zeros(len(names))
    arrived = np.zeros(len(names))
    for observation in past:
        out = {operator.name: operator.emission_rate_per_s for operator in observation.operators}
        for component in observation.components:
            served = served_rate_per_s(component, observation.period_s)
            rows = out.get(component.operators[-1], math.nan) if component.operators else math.nan
            i = place[component.name]
            if served > 0 and math.isfinite(served):
                processed[i] += served
                emitted[i] += rows
                arrived[i] += component.arrival_rate_per_s
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = emitted / processed
    for child, upstream in enumerate(parents):
        total = float(sum(processed[up] for up in upstream))
        for up in upstream:
            if not math.isfinite(ratio[up]):
                ratio[up] = arrived[child] / total if total > 0 else math.nan
    return np.where(np.isfinite(ratio), ratio, 1.0)
