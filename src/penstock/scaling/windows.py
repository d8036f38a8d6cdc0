"""The monitoring window of AUTOSCALE as columns: one row per operator, one column a measurement.

Kotto-Kombi 2018, ch. 5 s. 2: rows received in each measurement interval, rows pending at the end of
the last one, processing latency per row without waiting, parallelism degree. An iteration of the
window lasts Delta; estimates are for the next Delta.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain

import numpy as np

from penstock.model.component_columns import ARRIVALS, BUSY, SERVED, SERVICE
from penstock.model.observation import Floats, Ints, Observation, TaskCpu
from penstock.scaling.component_table import stacked
from penstock.scaling.demand import excess_rows, gaps_of, last_service_times_s
from penstock.scaling.policies.policy import ScalingContext


@dataclass(frozen=True)
class OperatorWindows:
    """The windows of all operators, in one order; upstreams are places in that order."""

    names: tuple[str, ...]
    upstreams: tuple[tuple[int, ...], ...]
    duration_s: float  # Delta
    received_rows: Floats  # (operators, measurements), oldest first
    service_time_s: Floats  # (operators, measurements)
    pending_rows: Floats
    selectivity: tuple[tuple[float, ...], ...]  # rows from each upstream for each it processed
    parallelism: Ints
    max_parallelism: Ints
    known: tuple[bool, ...]  # whether an estimate may rest on the row
    cpu: tuple[tuple[TaskCpu, ...], ...]  # of the tasks of each operator; none where not measured
    reserved_cpu: Floats  # share of a CPU declared for each task; NaN where none is

    @property
    def size(self) -> int:
        return len(self.names)


def operator_windows(
    context: ScalingContext, window_s: float, max_degree: int | None = None
) -> OperatorWindows | None:
    """The newest iteration of the window; None while there is none."""
    newest = context.newest
    if newest is None:
        return None
    past = [o for o in context.window if o.at_s > newest.at_s - window_s + 1e-9]
    labels = {observation.columns.names for observation in past}
    names = tuple(sorted(set().union(context.current.parallelism, *labels)))
    if not names:
        return None
    upstreams = _upstreams(names, context.edges)
    measured = _read_columns(past, names)
    rates = measured.arrival_rate_per_s
    if context.sharing == "time":
        rates = _offered(past, rates)
    services = _with_last(measured.service_time_s, context, names)
    duration_s = sum(o.period_s for o in past)
    fresh = np.isfinite(rates[:, -1]) & (np.isfinite(services[:, -1]) | (rates[:, -1] == 0))
    if gaps_of(newest):
        fresh[:] = False
    running = context.current.parallelism
    most = min(context.limits.max_processors, max_degree or context.limits.max_processors)
    cpu = {component.name: component.cpu for component in newest.components}
    reserved = {component.name: component.reserved_cpu for component in newest.components}
    return OperatorWindows(
        names=names,
        upstreams=upstreams,
        duration_s=duration_s,
        received_rows=filled(rates) * (duration_s / len(past)),
        service_time_s=filled(services),
        pending_rows=_pending(context, newest, names, rates),
        selectivity=_selectivity(measured, upstreams, _sent(past, names, upstreams)),
        parallelism=np.array([max(1, running.get(name, 1)) for name in names], dtype=np.int64),
        max_parallelism=np.full(len(names), most, dtype=np.int64),
        known=tuple(fresh.tolist()),
        cpu=tuple(cpu.get(name, ()) for name in names),
        reserved_cpu=np.array([reserved.get(name, math.nan) for name in names]),
    )


@lru_cache(maxsize=16)  # a topology is asked every period and hardly ever changes
def _upstreams(
    names: tuple[str, ...], edges: tuple[tuple[str, str], ...]
) -> tuple[tuple[int, ...], ...]:
    place = {name: i for i, name in enumerate(names)}
    parents: list[set[int]] = [set() for _ in names]
    for upstream, downstream in edges:
        if upstream in place and downstream in place:
            parents[place[downstream]].add(place[upstream])
    return tuple(tuple(sorted(row)) for row in parents)


@dataclass(frozen=True)
class _Columns:
    """What was measured of each component in each period; NaN where it was not."""

    arrival_rate_per_s: Floats
    service_time_s: Floats
    served_rate_per_s: Floats  # counted, or busy time over service time, or arrivals
    emission_rate_per_s: Floats


def _read_columns(past: Sequence[Observation], names: tuple[str, ...]) -> _Columns:
    """One pass over the observations."""
    table = stacked(past, names)
    rates, services = table[:, ARRIVALS].T, table[:, SERVICE].T
    busy, counted = table[:, BUSY].T, table[:, SERVED].T
    services = np.where(services >= 0, services, np.nan)
    work = services * np.array([observation.period_s for observation in past])
    with np.errstate(divide="ignore", invalid="ignore"):
        served = np.where((work > 0) & (busy > 0), busy / work, rates)
    served = np.where(counted >= 0, counted, served)
    return _Columns(rates, services, served, _emitted(past, names))


def _emitted(past: Sequence[Observation], names: tuple[str, ...]) -> Floats:
    """What the last operator of each component sent on, where operators are measured."""
    emitted = np.full((len(names), len(past)), np.nan)
    place = {name: i for i, name in enumerate(names)}
    for column, observation in enumerate(past):
        out = {one.name: one.emission_rate_per_s for one in observation.operators}
        for component in observation.components if out else ():
            if component.operators:
                last = out.get(component.operators[-1], math.nan)
                emitted[place[component.name], column] = last
    return emitted


def filled(columns: Floats) -> Floats:
    """Gaps take the mean of what is known in their row; rows without any are zero."""
    known = np.isfinite(columns)
    count = known.sum(axis=1)
    total = np.where(known, columns, 0.0).sum(axis=1)
    mean = total / np.maximum(count, 1)
    return np.where(known, columns, mean[:, None])


def _offered(past: Sequence[Observation], rates: Floats) -> Floats:
    """Shared in time: what was not measured follows from the rate of the sources."""
    offered = np.array([observation.arrival_rate_per_s for observation in past])
    with np.errstate(divide="ignore", invalid="ignore"):
        visits = np.where(offered > 0, rates / offered, np.nan)
    return np.where(offered == 0, 0.0, filled(visits) * offered)


def _with_last(services: Floats, context: ScalingContext, names: Sequence[str]) -> Floats:
    """Where the newest period has no service time, the last one known stands in."""
    unknown = np.flatnonzero(np.isnan(services[:, -1])).tolist()
    if unknown:
        last = last_service_times_s(context.window)
        services[unknown, -1] = [last.get(names[i], math.nan) for i in unknown]
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


def _sent(
    past: Sequence[Observation], names: tuple[str, ...], upstreams: Sequence[Sequence[int]]
) -> Floats | None:
    """Rows a second along each edge in each period, edges downstream by downstream.

    None unless all edges are counted in some period; NaN in the others.
    """
    if not any(observation.flows.edges for observation in past):
        return None
    place = {name: i for i, name in enumerate(names)}
    edges = [(up, down) for down, parents in enumerate(upstreams) for up in parents]
    number = {edge: i for i, edge in enumerate(edges)}
    sent = np.full((len(edges), len(past)), np.nan)
    counted: tuple[tuple[str, str], ...] = ()
    rows: Ints = np.zeros(0, dtype=np.int64)
    for column, observation in enumerate(past):
        flows = observation.flows
        if flows.edges != counted:
            counted = flows.edges
            known = [(place.get(up, -1), place.get(down, -1)) for up, down in counted]
            rows = np.array([number.get(edge, -1) for edge in known], dtype=np.int64)
        inside = rows >= 0
        sent[rows[inside], column] = np.array(flows.rates_per_s)[inside]
    return sent if np.isfinite(sent).any(axis=1).all() else None


def _selectivity(
    measured: _Columns, upstreams: Sequence[Sequence[int]], sent: Floats | None
) -> tuple[tuple[float, ...], ...]:
    """Rows along each edge for each row its upstream processed, over the window.

    Kotto-Kombi 2018, ch. 5 eq. 7, of each edge: an upstream that divides its rows among several
    does not send all of them to each. Where edges are not counted, what arrives is divided among
    upstreams by what they emitted, or else processed.
    """
    lengths = [len(parents) for parents in upstreams]
    children = np.repeat(np.arange(len(upstreams)), lengths)
    parents = np.fromiter(chain.from_iterable(upstreams), np.int64, len(children))
    served = measured.served_rate_per_s
    if sent is not None:
        both = np.isfinite(sent) & np.isfinite(served[parents])
        rows = np.where(both, sent, 0.0).sum(axis=1)
        processed = np.where(both, served[parents], 0.0).sum(axis=1)
    else:
        known = np.isfinite(served) & (served > 0)
        processed = np.where(known, served, 0.0).sum(axis=1)
        emitted = np.where(known, measured.emission_rate_per_s, 0.0).sum(axis=1)
        arrived = np.where(np.isfinite(measured.arrival_rate_per_s), measured.arrival_rate_per_s, 0)
        weight = np.where(np.isfinite(emitted), emitted, processed)[parents]
        total = np.bincount(children, weight, len(upstreams))[children]
        rows = arrived.sum(axis=1)[children] * weight / np.where(total > 0, total, 1.0)
        processed = processed[parents]
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(processed > 0, rows / processed, 1.0).tolist()
    ends = np.cumsum(lengths).tolist()
    return tuple(
        tuple(ratio[end - length : end]) for end, length in zip(ends, lengths, strict=True)
    )
