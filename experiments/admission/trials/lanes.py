"""A simulation of lanes: queues that fill and drain, and what redirecting a stream costs.

A lane serves at its capacity. A stream that is redirected is held back at its client for a fixed
time, and until its old lane has served what it had queued, so that its rows stay in order; what
came meanwhile is buffered there and then sent to the new lane at once.
"""

from dataclasses import dataclass, field, replace

import numpy as np

from experiments.admission.workloads.streams import PERIOD_S, StreamWorkload
from penstock.admission.algorithm1 import AdmissionPlan
from penstock.admission.decide import decide_admission
from penstock.admission.lower_bound import lower_bound
from penstock.admission.problem import NEW, AdmissionProblem
from penstock.admission.strategy import Strategy
from penstock.admission.ticks import FULL, in_ticks
from penstock.model.observation import Floats, Ints

HISTORY_PERIODS = 12
HORIZON_PERIODS = 3
SAMPLES = 5  # of each queue in a period
REDIRECT_S = 0.5
BOUND_S = 5.0


@dataclass(frozen=True)
class Rules:
    """What is left open: when a lane counts as overloaded, and when lanes are drained."""

    overload_by: str = "either"  # as in fig. 5; s. 2.5 names queues only
    drain_below: float | None = 0.8
    accept_below: float = 0.95  # for PAR, which keeps no assignments, lanes are packed full


AS_JUDGED = Rules()


@dataclass
class Course:
    """What happened in each period of a run."""

    redirected: list[int] = field(default_factory=list)
    buffered_rows: list[float] = field(default_factory=list)
    delay_s: list[float] = field(default_factory=list)  # over all redirected streams
    lanes: list[int] = field(default_factory=list)
    fewest_lanes: list[int] = field(default_factory=list)  # a lower bound for the actual rates
    believed_per_s: list[float] = field(default_factory=list)  # rate that lanes made room for
    arrived_per_s: list[float] = field(default_factory=list)
    latency_s: list[float] = field(default_factory=list)  # of the latest lane, mean over samples
    late_share: list[float] = field(default_factory=list)  # of samples beyond the bound


@dataclass(frozen=True)
class Lanes:
    """Queues in rows, by lane, with the samples of the last period; and the lane of each stream."""

    queue_rows: Floats
    samples: Floats  # (lanes, samples)
    lane: Ints


def simulate(
    workload: StreamWorkload,
    strategy: Strategy | None,
    lane_capacity_per_s: float,
    start: Ints | None = None,
    rules: Rules = AS_JUDGED,
) -> Course:
    """A run over all periods after the first history; without a strategy nothing ever moves."""
    course = Course()
    streams, periods = workload.rates_per_s.shape
    lane = np.full(streams, NEW) if start is None else start
    count = int(lane.max()) + 1
    lanes = Lanes(np.zeros(count), np.zeros((count, 0)), lane)
    problem = AdmissionProblem(
        workload.rates_per_s, lane, lanes.samples, lane_capacity_per_s, BOUND_S, HORIZON_PERIODS,
        workload.metadata, drain_below=rules.drain_below, overload_by=rules.overload_by,
        accept_below=rules.accept_below if strategy and strategy.keeps_assignments else 1.0,
    )  # fmt: skip
    for period in range(HISTORY_PERIODS, periods):
        held_s = np.zeros(streams)
        if strategy is not None:
            seen = replace(
                problem,
                rates_per_s=workload.rates_per_s[:, period - HISTORY_PERIODS : period],
                lane=lanes.lane,
                queue_rows=lanes.samples,
                age_periods=np.full(streams, float(period)),
            )
            plan = decide_admission(seen, strategy).plan
            course.believed_per_s.append(plan.total_rate_per_s)
            held_s = _held_s(plan, lanes, lane_capacity_per_s)
            lanes = _carried_out(plan, lanes)
        rates = workload.rates_per_s[:, period]
        first = period == HISTORY_PERIODS  # the first assignment redirects no one
        lanes = _one_period(lanes, rates, held_s, lane_capacity_per_s, course)
        course.redirected.append(0 if first else int(np.count_nonzero(held_s)))
        course.buffered_rows.append(0.0 if first else float((rates * held_s).sum()))
        course.delay_s.append(0.0 if first else float(held_s.sum()))
        course.arrived_per_s.append(float(rates.sum()))
        course.lanes.append(len(lanes.queue_rows))
        course.fewest_lanes.append(lower_bound(in_ticks(rates, lane_capacity_per_s), FULL))
    return course


def _held_s(plan: AdmissionPlan, lanes: Lanes, capacity_per_s: float) -> Floats:
    held = np.zeros(len(plan.lane))
    before = lanes.lane[plan.redirected]
    waiting_s = lanes.queue_rows[before] / capacity_per_s
    held[plan.redirected] = np.minimum(REDIRECT_S + waiting_s, PERIOD_S)
    return held


def _carried_out(plan: AdmissionPlan, lanes: Lanes) -> Lanes:
    """Lanes after a plan: new ones empty, retired ones gone, numbered anew."""
    new = plan.new_lanes
    queue = np.concatenate([lanes.queue_rows, np.zeros(new)])
    samples = np.concatenate([lanes.samples, np.full((new, lanes.samples.shape[1]), np.nan)])
    kept = np.ones(len(queue), dtype=bool)
    kept[plan.retired] = False
    number = np.cumsum(kept) - 1
    return Lanes(queue[kept], samples[kept], number[plan.lane])


def _one_period(
    lanes: Lanes, rates: Floats, held_s: Floats, capacity_per_s: float, course: Course
) -> Lanes:
    step_s = PERIOD_S / SAMPLES
    queue = lanes.queue_rows
    samples, latest_s = [], []
    for sample in range(SAMPLES):
        start_s, end_s = sample * step_s, (sample + 1) * step_s
        # A stream that is released in this step brings all that came since the period began.
        since_s = np.where(held_s > start_s, 0.0, start_s)
        came = np.where(held_s > end_s, 0.0, rates * (end_s - since_s))
        arrived = np.bincount(lanes.lane, came, len(queue))
        queue = np.maximum(0.0, queue + arrived - capacity_per_s * step_s)
        samples.append(queue)
        held_now = np.max(np.minimum(held_s, end_s)[held_s > start_s], initial=0.0)
        latest_s.append(max(float(queue.max(initial=0.0)) / capacity_per_s, held_now))
    course.latency_s.append(float(np.mean(latest_s)))
    course.late_share.append(float(np.mean(np.array(latest_s) > BOUND_S)))
    return Lanes(queue, np.stack(samples, axis=1), lanes.lane)
