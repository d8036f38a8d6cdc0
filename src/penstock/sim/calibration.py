"""A scenario made of a recorded run: its load, its service times, its batch overheads.

Components that run together share all processors in time, so a batch takes as long in whatever
order they stand: the scenario has them one after the other, each with the rows that came to it for
each row of the sources. Start-up times, and what starts cost the batches meanwhile, are those of
the executors that were added in the run; the periods of their starts say nothing else.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from penstock.control.act_costs import ActCosts
from penstock.control.actions import SetExecutors
from penstock.control.records import ActionRecord, RunRecord
from penstock.errors import InvalidInput
from penstock.model.batch_overhead import BatchOverhead
from penstock.model.decision import USUAL_SHARE
from penstock.model.observation import Observation
from penstock.scaling.models.microbatch import learn_overhead
from penstock.scaling.policies.promise_costs import settled
from penstock.sim.scenario import (
    LEAST_OVERHEAD_S,
    BatchCost,
    ClusterSpec,
    OperatorSpec,
    Scenario,
    SourceSpec,
    Upstream,
)
from penstock.sim.service import ServiceTime
from penstock.workloads.profiles import RateProfile

LEAST_PERIODS = 6  # fewer say nothing about a load that moves
SOURCE = "recorded load"
USUAL_STARTUP_S = 3.0  # of an executor, where none was added in the run
SHORTEST_TRIGGER_S = 0.01  # what Spark calls an interval below this is back to back


@dataclass(frozen=True)
class Cost:
    """What a component costs: processor-seconds a row, and its rows for each of the sources."""

    name: str
    service_time_s: float
    visits: float


def usable(observations: Sequence[Observation], run: RunRecord) -> list[Observation]:
    """The periods a replay can stand on, or a sentence that says why there are too few."""
    found = [o for o in observations if o.period_s > 0 and math.isfinite(o.arrival_rate_per_s)]
    if len(found) < LEAST_PERIODS:
        raise InvalidInput(
            f"the run of {run.topology!r} holds {len(found)} measured periods; a replay needs at "
            f"least {LEAST_PERIODS}."
        )
    if not any(o.batches is not None for o in found):
        raise InvalidInput(
            f"the run of {run.topology!r} holds no batches; only components that run together "
            "can be replayed."
        )
    if not any(o.latency is not None for o in found):
        raise InvalidInput(f"the run of {run.topology!r} holds no latency to compare with.")
    return found


def recorded_load(observations: Sequence[Observation]) -> RateProfile:
    """The rate of each period, held for its length, from the start of the first."""
    start_s = began_s(observations)
    times: list[float] = []
    rates: list[float] = []
    for before_s, o in zip([start_s, *(o.at_s for o in observations)], observations, strict=False):
        times += [before_s - start_s, o.at_s - start_s]
        rates += [o.arrival_rate_per_s, o.arrival_rate_per_s]
    return RateProfile(tuple(np.maximum.accumulate(times).tolist()), tuple(rates))


def began_s(observations: Sequence[Observation]) -> float:
    """When the first period began."""
    return observations[0].at_s - observations[0].period_s


def costs(observations: Sequence[Observation]) -> tuple[Cost, ...]:
    """Each component's cost, weighted by the rows it was measured on; most visited first."""
    rows: dict[str, float] = {}
    work_s: dict[str, float] = {}
    offered: dict[str, float] = {}
    for o in observations:
        for c in o.components:
            came = c.arrival_rate_per_s * o.period_s
            if not (c.service_time_s >= 0 and came > 0):
                continue
            rows[c.name] = rows.get(c.name, 0.0) + came
            work_s[c.name] = work_s.get(c.name, 0.0) + came * c.service_time_s
            arrived = o.arrival_rate_per_s * o.period_s
            offered[c.name] = offered.get(c.name, 0.0) + arrived
    found = [
        Cost(name, work_s[name] / count, count / offered[name])
        for name, count in rows.items()
        if work_s[name] > 0 and offered[name] > 0
    ]
    if not found:
        raise InvalidInput("the run holds no service time; its components were never measured.")
    return tuple(sorted(found, key=lambda cost: (-cost.visits, cost.name)))


def overheads(observations: Sequence[Observation], most_processors: int) -> BatchCost:
    """O(K): as measured where the run had K processors, and along their line elsewhere."""
    by_processors: dict[int, list[tuple[float, int]]] = {}
    for o in observations:
        batches = o.batches
        # A cost of exactly nothing was written where the work of a batch was not known in time.
        if batches is None or batches.count == 0 or not batches.mean_overhead_s > 0:
            continue
        entry = (batches.mean_overhead_s, batches.count)
        by_processors.setdefault(max(1, o.processors), []).append(entry)
    if not by_processors:
        raise InvalidInput("the run holds no batch overhead; none of its batches was measured.")
    measured = {
        processors: float(np.average([o for o, _ in seen], weights=[n for _, n in seen]))
        for processors, seen in by_processors.items()
    }
    line, _ = learn_overhead(observations, BatchOverhead(0.0))
    low, high = min(measured), max(measured)
    table = dict(measured)
    for end, nearest in ((1, low), (max(most_processors, high), high)):
        table.setdefault(end, measured[nearest] + line.per_processor_s * (end - nearest))
    points = sorted((k, max(LEAST_OVERHEAD_S, cost)) for k, cost in table.items())
    return BatchCost(table=tuple(points))


def overhead_course(
    observations: Sequence[Observation], cost: BatchCost
) -> tuple[tuple[float, float], ...]:
    """How many times O(K) batches cost in each period: what held them up would have held up any."""
    start_s, found = began_s(observations), list[tuple[float, float]]()
    for o in settled(observations) or observations:
        if o.batches is None or o.batches.count == 0 or not o.batches.mean_overhead_s > 0:
            continue
        begun_s = max(0.0, o.at_s - o.period_s - o.batches.mean_duration_s - start_s)
        usual_s = cost.overhead_s(max(1, o.processors))
        found.append(
            (max([begun_s, *(at for at, _ in found[-1:])]), o.batches.mean_overhead_s / usual_s)
        )
    return tuple(found)


def pause_s(
    observations: Sequence[Observation], actions: Sequence[ActionRecord], slots: int
) -> float:
    """By how much batches took longer while executors started, in the middle of what was seen."""
    costs, seen = ActCosts(slots), list[float]()
    acts = [record for record in actions if record.outcome.done]
    for o in observations:
        while acts and acts[0].at_s < o.at_s:
            action, at_s = acts[0].outcome.action, acts.pop(0).at_s
            if isinstance(action, SetExecutors):
                before = [len(one.nodes) for one in observations if one.at_s <= at_s]
                costs.asked(at_s, (before or [0])[-1] * slots, action.total * slots)
        for paid in costs.saw(o):
            if paid.numbers["executors_after"] > paid.numbers["executors_before"]:
                seen.append(paid.numbers["pause_s"])
    return float(np.median(seen)) if seen else 0.0


def startup_s(observations: Sequence[Observation], actions: Sequence[ActionRecord]) -> float:
    """From asking for executors to their being there, in the middle of what was seen."""
    seen: list[float] = []
    for record in actions:
        action = record.outcome.action
        if not isinstance(action, SetExecutors) or not record.outcome.done:
            continue
        before = [len(o.nodes) for o in observations if o.at_s <= record.at_s]
        if not before or action.total <= before[-1]:
            continue
        there = (o for o in observations if o.at_s > record.at_s and len(o.nodes) >= action.total)
        first = next(there, None)
        if first is not None:  # it came at some moment of that period
            seen.append(max(0.0, first.at_s - record.at_s - first.period_s / 2))
    return float(np.median(seen)) if seen else USUAL_STARTUP_S


def scenario_of(
    run: RunRecord,
    observations: Sequence[Observation],
    actions: Sequence[ActionRecord],
    *,
    rate_factor: float = 1.0,
    max_latency_s: float | None = None,
    executors: tuple[int, int] | None = None,
    seed: int = 1,
) -> Scenario:
    """The run as a scenario; `executors` are the fewest and most, by default those of the run."""
    seen = usable(observations, run)
    most_seen = max(1, *(len(o.nodes) for o in seen))
    fewest, most = executors or (run.executors_min, max(run.executors_max, most_seen))
    first = len(seen[0].nodes) or fewest
    slots = max([run.slots_per_executor, *(n.slots for n in seen[0].nodes)])
    trigger_s = run.batch_interval_s if run.batch_interval_s >= SHORTEST_TRIGGER_S else 0.0
    cost = overheads(settled(seen) or seen, most * slots)
    return Scenario(
        name=run.topology,
        duration_s=seen[-1].at_s - began_s(seen),
        max_latency_s=max_latency_s or run.max_latency_s,
        share=USUAL_SHARE if run.share is None else run.share,
        sources=(SourceSpec(SOURCE, recorded_load(seen).scaled(rate_factor), "regular"),),
        operators=_chain(costs(seen)),
        cluster=ClusterSpec(
            min(max(first, fewest), most),
            fewest,
            most,
            slots,
            startup_s(seen, actions),
            pause_s(seen, actions, slots),
        ),
        batch=BatchCost(table=cost.table, trigger_s=trigger_s, course=overhead_course(seen, cost)),
        period_s=run.period_s,
        step_s=min(0.1, run.period_s),
        rates_by_batch=any(o.rate_age_s > 0 for o in seen),
        seed=seed,
    )


def _chain(found: Sequence[Cost]) -> tuple[OperatorSpec, ...]:
    """Components one after the other, and one result for every row of the sources.

    It leaves at the first component, or before it where only a share of the rows goes there; the
    others only cost. A component that each row visits several times is visited once and takes as
    much longer.
    """
    visits = [cost.visits for cost in found]
    often = max(1.0, visits[0])
    chain: list[OperatorSpec] = []
    for position, cost in enumerate(found):
        if position == 0:
            upstream = Upstream(SOURCE, min(1.0, visits[0]))
        else:
            share = visits[1] / visits[0] if position == 1 else 1.0
            upstream = Upstream(found[position - 1].name, share)
        last = position == len(found) - 1
        passed_on = 0.0 if last else visits[position + 1] / cost.visits
        chain.append(
            OperatorSpec(
                cost.name,
                (upstream,),
                ServiceTime("deterministic", cost.service_time_s * often),
                selectivity=1.0 if position == 0 else passed_on,
                sink=position == 0,
            )
        )
    return tuple(chain)
