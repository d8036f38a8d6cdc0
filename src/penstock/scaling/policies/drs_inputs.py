"""What DRS reads from a window: a smoothed network, its latency, the model and its correction."""

from dataclasses import dataclass, replace

import numpy as np

from penstock.scaling.demand import Demand, Demands, demands, idle
from penstock.scaling.models.batch_work import BatchWork, learn_work, marginal
from penstock.scaling.models.correction import Correction, fit_correction
from penstock.scaling.models.jackson import GIGK, MMK
from penstock.scaling.models.microbatch import BatchOverhead, Microbatch, learn_overhead
from penstock.scaling.models.network import LatencyModel, Network
from penstock.scaling.offered import offered_rates
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
    model = _model(context, model_name, overhead, trigger_interval_s, work)
    history = [
        _at(context, end) for end in range(_first(context, smoothing), len(context.window) + 1)
    ]
    found = history[-1]
    if not found.components or not all(demand.known for demand in found):
        return None
    network = marginal(_network(context, history, smoothing), work)
    pairs = _pairs(context, model, work) if correct else []
    correction = fit_correction(pairs)
    running = np.array([demand.parallelism for demand in found], dtype=np.int64)
    if context.sharing == "time":
        running = np.full(len(running), max(1, context.current.processors))
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
        behind=any(demand.backlog_rate_per_s > 0 for demand in found),
        foreseen=newest.foreseen,
        expected_s=correction.corrected_s(model.latency_s(network, running)),
        bound_s=bound,
        gaps=found.gaps,
    )


def _first(context: ScalingContext, smoothing: Smoothing) -> int:
    if smoothing.alpha is not None:
        return 1
    return max(1, len(context.window) - smoothing.window + 1)


def _model(
    context: ScalingContext,
    name: str,
    overhead: BatchOverhead,
    interval_s: float,
    work: BatchWork | None,
) -> LatencyModel:
    if name == "auto":
        name = "microbatch" if context.sharing == "time" else "mmk"
    if name == "microbatch":
        learnt = learn_overhead(context.window, overhead)[0]
        own_s = 0.0 if work is None else work.own_s
        return Microbatch(replace(learnt, work_s=own_s), interval_s)
    return GIGK if name == "gigk" else MMK


def _at(context: ScalingContext, end: int) -> Demands:
    """The demands as they were after `end` observations, unblocked where components are apart."""
    then = replace(context, window=context.window[:end])
    found = demands(then)
    if context.sharing == "time":
        return found
    newest = context.window[end - 1]
    rates = offered_rates(context, newest)
    unblocked = tuple(
        replace(
            demand,
            arrival_rate_per_s=rates.get(demand.name, demand.arrival_rate_per_s),
            backlog_rate_per_s=_late_rate_per_s(context, demand, newest.period_s),
        )
        for demand in found
    )
    return Demands(unblocked, found.gaps)


def _late_rate_per_s(context: ScalingContext, demand: Demand, period_s: float) -> float:
    """Rows a second that must be worked off beside the new ones.

    A queue is normal: by Little's law one bound's worth of rows may wait without being late. The
    rest need not be gone within a bound that is shorter than a period, for which a plan stays.
    """
    bound_s = context.limits.max_latency_s
    late = demand.backlog_rate_per_s - demand.arrival_rate_per_s
    return max(0.0, late) * bound_s / max(bound_s, period_s)


def _network(context: ScalingContext, history: list[Demands], smoothing: Smoothing) -> Network:
    names = tuple(demand.name for demand in history[-1])
    series: dict[str, list[Demand]] = {name: [] for name in names}
    for found in history:
        for demand in found:
            if demand.name in series:
                series[demand.name].append(demand)

    def column(values: list[list[float]]) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
        return np.array([smoothing(row) for row in values], dtype=np.float64)

    # A forecast is smooth already, and a mean with what came before would take it back.
    last = -1 if context.window[-1].foreseen else 0
    rates = column([[d.rate_per_s for d in series[name][last:]] for name in names])
    fresh = column([[d.arrival_rate_per_s for d in series[name][last:]] for name in names])
    services = column([[d.service_time_s for d in series[name]] for name in names])
    # Where nothing arrives, any service rate gives the same answer.
    services = np.where(services > 0, services, 1e-9)
    offered = [observation.arrival_rate_per_s for observation in context.window]
    external = smoothing(offered[-len(history) :][last:])
    if not external > 0:
        external = float(fresh.max(initial=0.0))
    return Network(
        names=names,
        arrival_rate_per_s=rates,
        service_rate_per_s=1.0 / services,
        visits=fresh / external if external > 0 else fresh,
        arrival_scv=column([[d.arrival_scv for d in series[name]] for name in names]),
        service_scv=column([[d.service_scv for d in series[name]] for name in names]),
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
    context: ScalingContext, model: LatencyModel, work: BatchWork | None
) -> list[tuple[float, float]]:
    """Estimate and measurement of each past period, each with what ran and came then."""
    single = Smoothing(1)
    pairs = []
    for end in range(max(1, len(context.window) - _MOST_PAIRS + 1), len(context.window) + 1):
        observation = context.window[end - 1]
        if observation.foreseen or observation.latency is None or not observation.latency.count:
            continue
        found = _at(context, end)
        if not found.components or not all(demand.known for demand in found):
            continue
        if any(demand.backlog_rate_per_s > 0 for demand in found):
            continue  # a backlog is no steady state, which is all the model knows
        then = replace(context, window=context.window[:end])
        network = marginal(_network(then, [found], single), work)
        ran = {component.name: component.parallelism for component in observation.components}
        shared = context.sharing == "time"
        running = np.array(
            [observation.processors if shared else ran.get(name, 0) for name in network.names],
            dtype=np.int64,
        )
        if running.min(initial=1) > 0:
            pairs.append((model.latency_s(network, running), observation.latency.mean_s))
    return pairs
