"""How many executors the next steps need: the first ones for sure, the later ones probably."""

import math
from dataclasses import dataclass

import numpy as np

from penstock.model.observation import Floats, Ints
from penstock.scaling.models.batch_course import (
    Capacities,
    Course,
    RatePath,
    follow,
    steady_share_s,
)
from penstock.scaling.policies.policy import ScalingContext
from penstock.scaling.policies.promise_inputs import PromiseInputs

_LITTLE_S = 0.5  # by which the rows that may be late may be so in the mean
_WAVERS = 3.0  # loads above what there is, over loads above what is asked for, before it changes
_LEAST_LEVEL = 0.5
_LEAST_KEPT = 0.5  # of the bound that is planned for, however long changes take
_LEAST_GAIN = 0.05  # of what one alone serves: less is no help


@dataclass(frozen=True)
class Needs:
    """Executors needed in each planned step, for how many periods, and what was expected."""

    executors: Ints
    enough: Ints  # to go on with, where that is what there is
    lasts: Ints
    upper_per_s: float  # the highest rate planned for until new executors serve
    infeasible: str | None
    notes: tuple[str, ...]
    _processors: Floats
    _latency_s: Floats
    _share: float

    @property
    def first(self) -> int:
        """Executors needed at once."""
        return int(self.executors[0])

    def latency_at(self, processors: int) -> float:
        """Latency that the share of the results keeps, with so many processors."""
        near = np.abs(self._processors - processors).argmin()
        return float(self._latency_s[near])

    def steady_s(self, inputs: PromiseInputs) -> dict[int, float]:
        """The same for each number of processors, were the load to stay as it is expected.

        What is behind is load too: it is to be worked off as fast as new executors would.
        """
        rate_per_s = inputs.ahead.expected_per_s[: inputs.lead].max(keepdims=True)
        if inputs.behind:
            rate_per_s = rate_per_s + inputs.waiting_rows / inputs.catch_up_s
        kept_s = steady_share_s(inputs.work, rate_per_s, self._processors, self._share)
        numbers = self._processors.astype(np.int64)
        return dict(zip(numbers.tolist(), kept_s.tolist(), strict=True))


def planned_bound_s(context: ScalingContext, keep: float, interval_s: float = 0.0) -> float:
    """What the slowest results are planned for: also those that come while an executor starts.

    A change makes batches longer by its pause. Planned for the whole bound, results would be late
    at each change. What is kept free for errors of the model is free for a short pause, too. How
    long rows wait for an interval of batches to end is no matter of a model.
    """
    bound_s = context.limits.max_latency_s
    waits_s = min(context.limits.share * interval_s, bound_s)
    left_s = min(waits_s + keep * (bound_s - waits_s), bound_s - context.act_price.pause_s)
    return max(_LEAST_KEPT * bound_s, left_s)


def find_needs(
    context: ScalingContext, inputs: PromiseInputs, step: int, keep: float, act_s: float
) -> Needs:
    """What keeps the promise, of the executors that may be had."""
    sizes, notes = _sizes(context, inputs, step)
    processors = sizes.astype(np.float64) * step
    bound_s = planned_bound_s(context, keep, inputs.work.interval_s)
    lower = max(_LEAST_LEVEL, 1 - _WAVERS * (1 - inputs.level))
    loads = [
        inputs.ahead.upper_per_s(level) for level in (inputs.level, lower, context.limits.share)
    ]
    needed, enough, foretold = _followed(
        context, inputs, processors, [load[: inputs.lead] for load in loads], bound_s
    )
    asked = _Asked(context, inputs, sizes, step, bound_s, act_s)
    return Needs(
        np.maximum(asked.steps(loads[0], needed), asked.announced()),
        np.maximum(asked.steps(loads[1], enough), asked.announced()),
        np.diff(np.array(inputs.ahead.steps), prepend=0),
        float(loads[0][: inputs.lead].max()),
        _infeasible(context, inputs, processors),
        notes,
        processors,
        foretold.latency_s,
        context.limits.share,
    )


@dataclass(frozen=True)
class _Asked:
    """Which of some numbers of executors is the fewest that do."""

    context: ScalingContext
    inputs: PromiseInputs
    sizes: Ints
    step: int
    bound_s: float
    act_s: float  # executor-seconds of a change, beside the start-up of each executor

    def steps(self, load_per_s: Floats, course: Course) -> Ints:
        """Of each planned step: the same until what is asked for now could serve, then its own."""
        inputs = self.inputs
        highest = float(load_per_s[: inputs.lead].max())
        stays = int(self._steady(load_per_s[[inputs.lead - 1]])[0])
        first = _first(self.context, inputs, course, self.sizes, self.step, highest, stays)
        first = max(first, self._kept(highest - float(inputs.ahead.expected_per_s[0])))
        later = self._steady(load_per_s[inputs.lead :])
        return np.concatenate([np.full(inputs.lead, first), later])

    def announced(self) -> Ints:
        """Of those there are, the ones that admission foresees a need for, at each planned step.

        Who has the best record in a calm need not know of the rush that ends it. Nothing is added
        on the word of admission alone; but what is there is kept if that is cheaper than to start
        it again, unless the rush should have come already.
        """
        said, now = self.inputs.announced, -(-self.context.current.processors // self.step)
        needed = self._steady(np.nan_to_num(said.ahead_per_s))
        overdue = self._steady(np.array([said.overdue_per_s]))[0] if said.overdue_per_s else 0
        awaited = np.isfinite(said.ahead_per_s) & (needed > overdue)
        return np.where(awaited, np.minimum(needed, now), 0)

    def _steady(self, rates_per_s: Floats) -> Ints:
        """The fewest for rates that stay."""
        processors = self.sizes.astype(np.float64) * self.step
        share = self.context.limits.share
        found_s = steady_share_s(self.inputs.work, rates_per_s[:, None], processors[None, :], share)
        kept = found_s <= self.bound_s
        found = np.where(kept.any(axis=1), kept.argmax(axis=1), len(self.sizes) - 1)
        return self.sizes[found]

    def _kept(self, width_per_s: float) -> int:
        """Of those there are, the ones that were needed within the time of the break-even.

        Where no forecaster knows when the load comes again, that is never much dearer than to know
        it (the ski rental of Karlin et al. 1988); where one does, none is kept without need.
        Several that go together share the cost of the change: k of them have saved it, and their
        start-up, after act / k + start-up.
        """
        inputs, now = self.inputs, -(-self.context.current.processors // self.step)
        fewer = self.sizes[self.sizes < now]
        if inputs.ahead.recurs or not len(fewer):
            return 0
        even_s = self.act_s / (now - fewer) + inputs.start_up_s
        lately = inputs.rates_per_s + max(0.0, width_per_s)
        periods = np.clip(np.round(even_s / inputs.period_s).astype(np.int64), 1, len(lately))
        needed = np.maximum.accumulate(self._steady(lately[: -periods.max() - 1 : -1]))
        go = needed[periods - 1] <= fewer
        return int(fewer[go.argmax()]) if go.any() else now


def _sizes(
    context: ScalingContext, inputs: PromiseInputs, step: int
) -> tuple[Ints, tuple[str, ...]]:
    """Numbers of executors to choose from; none that would bring nothing, and then a note."""
    least = max(1, -(-context.limits.min_processors // step))
    most = max(least, context.limits.max_processors // step)
    sizes = np.arange(least, most + 1)
    processors = sizes.astype(np.float64) * step
    alone_per_s = step * inputs.work.rows_per_s(np.ones(1))
    gained = np.diff(inputs.work.rows_per_s(processors)) > _LEAST_GAIN * alone_per_s
    useful = np.concatenate([[True], gained])
    last = most if useful.all() else int(sizes[useful.argmin() - 1])
    last = max(last, min(most, -(-context.current.processors // step)))
    if last == most:
        return sizes, ()
    note = (
        f"more than {last * step} processors would not help: each row has been taking longer the "
        f"more there were, {inputs.work.contention * 100:.2g}% for each"
    )
    return sizes[: last - least + 1], (note,)


def _followed(
    context: ScalingContext, inputs: PromiseInputs, wanted: Floats, loads: list[Floats],
    bound_s: float,
) -> list[Course]:  # fmt: skip
    """The course of each number of processors along each load, all of them at once."""
    live, asked = float(inputs.live), float(context.current.processors)
    each = np.tile(wanted, len(loads))
    capacity = Capacities(
        (
            (0.0, np.minimum(live, each)),
            (inputs.pending_s, np.minimum(max(live, asked), each)),
            (inputs.start_up_s, each),
        )
    )
    path = RatePath(np.repeat(np.stack(loads), len(wanted), axis=0), inputs.period_s)
    horizon_s = inputs.lead * inputs.period_s
    all_of_them = follow(
        path, inputs.work, capacity, inputs.waiting_rows, bound_s, horizon_s, context.limits.share
    )
    return all_of_them.parted(len(loads))


def _first(
    context: ScalingContext, inputs: PromiseInputs, course: Course, sizes: Ints, step: int,
    rate_per_s: float, stays: int,
) -> int:  # fmt: skip
    """The fewest that keep the share on the way, and work off what is behind.

    Rows that wait cost the same processor-seconds at any pace, so they are worked off within the
    time for which a new executor has to be paid at least. `stays` keep the share of what comes
    after that: where some are late whatever is done now, those after them need not be.
    """
    allowed = (1 - context.limits.share) / 2 * course.rows
    in_time = course.late_rows <= allowed
    if in_time.any() and not inputs.behind:
        return int(sizes[in_time.argmax()])
    # Some will be late whatever is done now: no time to give anything up.
    now = min(int(sizes[-1]), -(-context.current.processors // step))
    least_late = course.late_row_s <= course.late_row_s.min() + allowed * _LITTLE_S
    soon = max(int(sizes[least_late.argmax()]), int(sizes[in_time.argmax()]))
    return max(now, stays, min(soon, _catching_up(context, inputs, sizes, step, rate_per_s)))


def _catching_up(
    context: ScalingContext, inputs: PromiseInputs, sizes: Ints, step: int, rate_per_s: float
) -> int:
    """What works off, within the time of a start-up, all that will wait by then.

    Within that of the bound, where executors start sooner.
    """
    serves = inputs.work.rows_per_s(sizes.astype(np.float64) * step)
    live = np.array([float(inputs.live)])
    falls_behind = max(0.0, rate_per_s - float(inputs.work.rows_per_s(live)[0]))
    waiting = inputs.waiting_rows + falls_behind * inputs.start_up_s
    enough = serves >= rate_per_s + waiting / inputs.catch_up_s
    return int(sizes[enough.argmax()] if enough.any() else sizes[-1])


def _infeasible(context: ScalingContext, inputs: PromiseInputs, wanted: Floats) -> str | None:
    """Why the promise cannot be kept with what is allowed, at the load that is expected."""
    limits = context.limits
    least_s = float(steady_share_s(inputs.work, np.zeros(1), wanted, limits.share).min())
    share = f"{limits.share * 100:g}% of results within {limits.max_latency_s:g} s"
    if least_s > limits.max_latency_s:
        return (
            f"{share} cannot be kept: a batch without any row takes so long that results take up "
            f"to {least_s:.3g} s"
        )
    rate = float(inputs.ahead.expected_per_s[inputs.lead - 1])
    best_s = float(steady_share_s(inputs.work, np.array([rate]), wanted, limits.share).min())
    if best_s <= limits.max_latency_s:
        return None
    takes = f"take up to {best_s:.3g} s" if math.isfinite(best_s) else "pile up"
    return (
        f"{share} cannot be kept: with all {int(wanted[-1])} processors results {takes} at the "
        f"{rate:.4g} rows/s that are expected"
    )
