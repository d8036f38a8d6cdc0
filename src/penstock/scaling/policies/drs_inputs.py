"""What DRS reads from a window: a smoothed network, its latency, the model and its correction."""

from dataclasses import dataclass, replace

import numpy as np

from penstock.model.batch_overhead import BatchOverhead
from penstock.model.observation import Floats, Ints
from penstock.scaling.demand import all_gaps, component_names, idle
from penstock.scaling.demand_series import DemandSeries, demand_series
from penstock.scaling.models.batch_work import BatchWork, learn_work, marginal
from penstock.scaling.models.correction import Correction, fit_correction
from penstock.scaling.models.jackson import GIGK, MMK, Jackson
from penstock.scaling.models.microbatch import Microbatch, learn_overhead
from penstock.scaling.models.network import LatencyModel, Network
from penstock.scaling.offered import offered_rates
from penstock.scaling.policies.drs_hops import learn_hops, works_in_batches
from penstock.scaling.policies.policy import ScalingContext
from penstock.scaling.smoothing import Smoothing

_MOST_PAIRS = 30  # older ones say little about the present


@dataclass(frozen=True)
class Inputs:
    """Everything a DRS decision rests on."""

    network: Network  # with the backlog that is to be worked off
    steady: Network  # without: what comes once it is gone
    model: LatencyModel
    correction: Correction
    measured_s: float  # smoothed; NaN when not measured since the last change
    newest_s: float  # of the newest period alone; NaN likewise
    behind: bool  # whether rows wait that should have been worked off
    foreseen: bool  # whether the rates are yet to come
    expected_s: float  # the corrected model at what runs now
    bound_s: float  # the model's latency that corresponds to the bound
    gaps: tuple[str, ...]


def read_inputs(
    context: ScalingContext,
    model_name: str,
    smoothing: Smoothing,
    overhead: BatchOverhead,
    trigger_interval_s: float,
    correct: bool,
) -> Inputs | None:
    """The inputs, or None while some component's load is unknown."""
    newest = context.newest
    if newest is None:
        return None
    together = model_name == "microbatch" or (model_name == "auto" and context.sharing == "time")
    work = learn_work(context.window) if together else None
    names = component_names(context)
    if not names:
        return None
    model = _model(context, model_name, names, overhead, trigger_interval_s, work)
    smoothed = len(context.window) if smoothing.alpha is not None else smoothing.window
    series = demand_series(context, names, max(smoothed, _MOST_PAIRS if correct else 1))
    series = replace(series, backlog_rate_per_s=_late_rates(context, series))
    unblocked = _unblocked(context, series, smoothed)
    if not unblocked.known[-1]:
        return None
    network = marginal(_network(unblocked, smoothing), work)
    correction = fit_correction(_pairs(context, series, model, work) if correct else [])
    running = _running(context, series)
    bound = correction.bound_s(context.limits.max_latency_s)
    if not bound > 0:  # the offset alone breaks the bound: ask the plain model
        correction, bound = Correction(), context.limits.max_latency_s
    return Inputs(
        network=network,
        steady=replace(network, arrival_rate_per_s=network.visits * network.external_rate_per_s),
        model=model,
        correction=correction,
        measured_s=_measured(context, smoothing),
        newest_s=_measured(replace(context, window=context.window[-1:]), smoothing),
        behind=bool((unblocked.backlog_rate_per_s[:, -1] > 0).any()),
        foreseen=newest.foreseen,
        expected_s=correction.corrected_s(model.latency_s(network, running)),
        bound_s=bound,
        gaps=all_gaps(context, ()),  # the demand of all components is known
    )


def _model(
    context: ScalingContext,
    name: str,
    names: tuple[str, ...],
    overhead: BatchOverhead,
    interval_s: float,
    work: BatchWork | None,
) -> LatencyModel:
    if name == "auto" and context.sharing == "time":
        name = "microbatch"
    if name == "hops" or (name == "auto" and works_in_batches(context.window)):
        return learn_hops(context, names, overhead, interval_s)
    if name == "microbatch":
        learnt = learn_overhead(context.window, overhead)[0]
        own_s = 0.0 if work is None else work.own_s
        return Microbatch(replace(learnt, work_s=own_s), interval_s)
    return GIGK if name == "gigk" else MMK


def _running(context: ScalingContext, series: DemandSeries) -> Ints:
    """Processors of each component: as they were given, or else as measured."""
    if context.sharing == "time":
        return np.full(len(series.names), max(1, context.current.processors))
    given, seen = context.current.parallelism, series.parallelism[:, -1].tolist()
    return np.array(
        [given.get(name, max(1, int(n))) for name, n in zip(series.names, seen, strict=True)],
        dtype=np.int64,
    )


def _late_rates(context: ScalingContext, series: DemandSeries) -> Floats:
    """Rows a second that must be worked off beside the new ones.

    A queue of a component's own is normal: by Little's law one bound's worth of rows may wait
    without being late. The rest need not be gone within a bound that is shorter than a period, for
    which a plan stays.
    """
    behind = series.backlog_rate_per_s
    if context.sharing == "time":
        return behind
    bound_s = context.limits.max_latency_s
    periods_s = np.array([observation.period_s for observation in series.periods])
    late = np.maximum(0.0, np.nan_to_num(behind - series.arrival_rate_per_s))
    return np.asarray(late * bound_s / np.maximum(bound_s, periods_s))


def _unblocked(context: ScalingContext, series: DemandSeries, smoothed: int) -> DemandSeries:
    """The periods that are smoothed, with what would arrive if nothing were held up."""
    rates = series.arrival_rate_per_s[:, -smoothed:].copy()
    periods = series.periods[-smoothed:]
    if context.sharing == "space":
        for column, observation in enumerate(periods):
            offered = offered_rates(context, observation)
            if observation.columns.names == series.names:
                rates[:, column] = list(offered.values())
            else:
                measured = rates[:, column].tolist()
                rates[:, column] = [
                    offered.get(name, rate)
                    for name, rate in zip(series.names, measured, strict=True)
                ]
    return DemandSeries(
        series.names,
        periods,
        rates,
        series.backlog_rate_per_s[:, -smoothed:],
        series.service_time_s[:, -smoothed:],
        series.parallelism[:, -smoothed:],
        series.arrival_scv[:, -smoothed:],
        series.service_scv[:, -smoothed:],
    )


def _network(series: DemandSeries, smoothing: Smoothing) -> Network:
    # A forecast is smooth already, and a mean with what came before would take it back.
    last = -1 if series.periods[-1].foreseen else 0
    fresh = smoothing.columns(series.arrival_rate_per_s[:, last:])
    services = smoothing.columns(series.service_time_s)
    external = smoothing([one.arrival_rate_per_s for one in series.periods][last:])
    if not external > 0:
        external = float(fresh.max(initial=0.0))
    return Network(
        names=series.names,
        arrival_rate_per_s=smoothing.columns(series.rate_per_s[:, last:]),
        # Where nothing arrives, any service rate gives the same answer.
        service_rate_per_s=1.0 / np.where(services > 0, services, 1e-9),
        visits=fresh / external if external > 0 else fresh,
        arrival_scv=smoothing.columns(series.arrival_scv),
        service_scv=smoothing.columns(series.service_scv),
        external_rate_per_s=external,
    )


def _measured(context: ScalingContext, smoothing: Smoothing) -> float:
    """Smoothed latency since the current plan runs; zero when nothing waits and nothing comes."""
    newest = context.window[-1]
    if idle(newest):
        return 0.0
    since = context.last_change_s
    return smoothing(
        [
            observation.latency.mean_s
            for observation in context.window
            if observation.latency is not None
            and observation.latency.count > 0
            and observation.at_s - observation.period_s >= since - 1e-9
        ]
    )


def _pairs(
    context: ScalingContext, series: DemandSeries, model: LatencyModel, work: BatchWork | None
) -> list[tuple[float, float]]:
    """Estimate and measurement of past periods, each with what ran and came then."""
    taken = _paired(context, series)
    if not taken:
        return []
    periods = [series.periods[t] for t in taken]
    if context.sharing == "time":
        counts = np.array([observation.processors for observation in periods])
        ran = np.broadcast_to(counts, (len(series.names), len(counts)))
    else:
        ran = series.parallelism[:, taken].astype(np.int64)
    rates, services = series.arrival_rate_per_s[:, taken], series.service_time_s[:, taken]
    external = np.array([observation.arrival_rate_per_s for observation in periods])
    external = np.where(external > 0, external, rates.max(axis=0, initial=0.0))
    then = Network(
        series.names, rates, 1.0 / np.where(services > 0, services, 1e-9),
        rates / np.where(external > 0, external, 1.0), series.arrival_scv[:, taken],
        series.service_scv[:, taken], 0.0,
    )  # fmt: skip
    measured = [one.latency.mean_s for one in periods if one.latency]
    if isinstance(model, Jackson):
        return list(zip(model.latencies_s(then, ran).tolist(), measured, strict=True))
    estimates = [
        model.latency_s(marginal(_at(then, t, float(external[t])), work), ran[:, t])
        for t in range(len(periods))
    ]
    return list(zip(estimates, measured, strict=True))


def _at(networks: Network, column: int, external_rate_per_s: float) -> Network:
    """One network of several that are columns of one."""
    return Network(
        networks.names, networks.arrival_rate_per_s[:, column],
        networks.service_rate_per_s[:, column], networks.visits[:, column],
        networks.arrival_scv[:, column], networks.service_scv[:, column], external_rate_per_s,
    )  # fmt: skip


def _paired(context: ScalingContext, series: DemandSeries) -> list[int]:
    """Periods whose latency says something of the model: measured, known, all components running.

    Not one with a backlog: that is no steady state, which is all the model knows.
    """
    usable = series.known & np.all(series.backlog_rate_per_s <= 0, axis=0)
    if context.sharing == "space":
        usable &= (series.parallelism > 0).all(axis=0)
    else:
        usable &= np.array([observation.processors > 0 for observation in series.periods])
    return [
        t
        for t in np.flatnonzero(usable).tolist()[-_MOST_PAIRS:]
        if (one := series.periods[t]).latency is not None and one.latency.count and not one.foreseen
    ]
