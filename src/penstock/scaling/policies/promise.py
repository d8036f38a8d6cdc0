"""The policy `promise`: the fewest executors that keep a share of the results within the bound.

Each period it asks what the sources will bring until executors asked for now could serve, not as a
number but as a quantile at the share; follows the batches along that rate for every number of
executors (`models.batch_course`); and takes the fewest whose rows keep the bound. Whether one that
is not needed now goes depends on whether it is expected to be needed again before its start-up
would have paid (`promise_plan`).
"""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from penstock.forecast.load_ahead import LoadAhead
from penstock.model.decision import Decision, ScalingPlan
from penstock.model.observation import Ints
from penstock.scaling.demand import gaps_of
from penstock.scaling.models.batch_course import Capacities, Course, RatePath, follow
from penstock.scaling.plans import change, hold, shared_plan
from penstock.scaling.policies.options import option
from penstock.scaling.policies.policy import ScalingContext
from penstock.scaling.policies.promise_inputs import PromiseInputs, read_promise_inputs
from penstock.scaling.policies.promise_plan import cheapest_course

_LITTLE_S = 0.5  # by which the rows that may be late may be so in the mean


@dataclass(frozen=True)
class Promise:
    """Keeps the share within the bound, at the least executor-seconds it can foresee."""

    looks_ahead: ClassVar[bool] = True
    window_periods: ClassVar[int] = 720

    keep: float = option(
        0.9, "Share of the bound that the slowest results are planned for.",
        least=0.1, greatest=1,
    )  # fmt: skip
    act_price_s: float = option(
        20.0, "Executor-seconds that a change must save to be worth it.", least=0.001,
        greatest=86_400, off=0.0,
    )  # fmt: skip
    look_ahead_s: float = option(
        120.0, "How far ahead it plans.", least=1, greatest=86_400,
    )  # fmt: skip
    later_level: float = option(
        0.7, "Probability with which the load stays below what it plans for later.",
        least=0.01, greatest=0.999,
    )  # fmt: skip
    step: int = option(
        1, "Processors added or removed at once.", least=1, greatest=1024,
        shown="one executor's slots",
    )  # fmt: skip
    trigger_interval_s: float = option(
        0.0, "Time from the start of one batch to the start of the next, for the model.",
        least=0.001, greatest=3600, off=0.0, shown="batch-interval",
    )  # fmt: skip

    @property
    def name(self) -> str:
        return "promise"

    def decide(self, context: ScalingContext) -> Decision[ScalingPlan]:
        """The first step of the cheapest course."""
        inputs = read_promise_inputs(
            context, self.trigger_interval_s, self.look_ahead_s
        )  # fmt: skip
        if inputs is None:
            return hold(context, "no change: the load was not measured yet")
        sizes = self._sizes(context)
        course = self._followed(context, inputs, sizes)
        needed = self._needed(context, inputs, course, sizes)
        needs = self._needs(context, inputs, sizes, needed)
        now = max(1, -(-context.current.processors // self.step))
        price = self.act_price_s / inputs.period_s
        steps = np.array(inputs.ahead.steps)
        planned = int(cheapest_course(now, needs, price, np.diff(steps, prepend=0))[0])
        gaps = gaps_of(context.window[-1])
        if planned < now and gaps:
            return hold(context, f"no scale-in while not measured: {', '.join(gaps)}")
        plan = shared_plan(context, planned * self.step)
        return Decision(plan, (f'{needs.tolist()} {inputs.ahead.forecaster} {inputs.ahead.expected_per_s.round().tolist()} {inputs.ahead.upper_per_s(context.limits.share).round().tolist()}',))

    def _sizes(self, context: ScalingContext) -> Ints:
        """Numbers of executors to choose from."""
        least = max(1, -(-context.limits.min_processors // self.step))
        most = max(least, context.limits.max_processors // self.step)
        return np.arange(least, most + 1)

    def _followed(self, context: ScalingContext, inputs: PromiseInputs, sizes: Ints) -> Course:
        wanted = sizes * float(self.step)
        live, asked = float(inputs.live), float(context.current.processors)
        capacity = Capacities(
            (
                (0.0, np.minimum(live, wanted)),
                (inputs.pending_s, np.minimum(max(live, asked), wanted)),
                (inputs.start_up_s, wanted),
            )
        )
        upper = inputs.ahead.upper_per_s(context.limits.share)
        path = RatePath(upper[: inputs.lead], inputs.period_s)
        return follow(
            path, inputs.work, capacity, inputs.waiting_rows,
            self.keep * context.limits.max_latency_s,
            inputs.lead * inputs.period_s,
        )  # fmt: skip

    def _needed(
        self, context: ScalingContext, inputs: PromiseInputs, course: Course, sizes: Ints
    ) -> int:
        """The fewest that keep the share on the way, and work off what is behind.

        Rows that wait cost the same processor-seconds at any pace, so they are worked off within
        the time for which a new executor has to be paid at least.
        """
        allowed = (1 - context.limits.share) / 2 * course.rows
        enough = course.late_rows <= course.late_rows.min() + allowed
        enough &= course.late_row_s <= course.late_row_s.min() + allowed * _LITTLE_S
        keeping = int(sizes[enough.argmax()])
        if (course.late_rows > allowed).all():
            keeping = max(keeping, -(-context.current.processors // self.step))
        if not inputs.behind:
            return keeping
        load = float(inputs.ahead.expected_per_s.max()) * inputs.work.row_s
        within_s = max(inputs.start_up_s, context.limits.max_latency_s)
        processors = load + inputs.waiting_rows * inputs.work.row_s / within_s
        return min(int(sizes[-1]), max(keeping, math.ceil(processors / self.step)))

    def _needs(
        self, context: ScalingContext, inputs: PromiseInputs, sizes: Ints, first: int
    ) -> Ints:
        """The fewest executors for each step: now for sure, later for what is likely."""
        likely = inputs.ahead.upper_per_s(self.later_level)[inputs.lead :]
        loads = likely[:, None] * inputs.work.row_s / (sizes * self.step)[None, :]
        overhead = inputs.work.batch_s(np.zeros(len(sizes)), sizes * float(self.step))
        with np.errstate(divide="ignore"):
            length = np.where(loads < 1, overhead[None, :] / (1 - loads), math.inf)
        kept = 2 * length <= self.keep * context.limits.max_latency_s
        later = np.where(kept.any(axis=1), kept.argmax(axis=1), len(sizes) - 1)
        return np.concatenate([np.full(inputs.lead, first), sizes[later]])
