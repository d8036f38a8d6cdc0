"""The policy `promise`: the fewest executors that keep a share of the results within the bound.

Each period it asks what the sources will bring until executors asked for now could serve, not as a
number but as a quantile at the share; follows the batches along that rate for every number of
executors (`models.batch_course`); and takes the fewest whose rows keep the bound. Whether one that
is not needed now goes, and whether more come at once, is what a course over the next minutes costs
(`promise_plan`). Components with processors of their own are planned by `promise_apart`.
"""

import math
from dataclasses import dataclass, field
from typing import ClassVar

from penstock.forecast.calendar import RateCalendar
from penstock.model.decision import Decision, ScalingPlan
from penstock.scaling.demand import gaps_of, idle
from penstock.scaling.plans import change, hold, shared_plan
from penstock.scaling.policies.options import option
from penstock.scaling.policies.policy import ScalingContext
from penstock.scaling.policies.promise_apart import decide_apart
from penstock.scaling.policies.promise_inputs import PromiseInputs, read_promise_inputs
from penstock.scaling.policies.promise_needs import Needs, find_needs
from penstock.scaling.policies.promise_numbers import forecast_numbers
from penstock.scaling.policies.promise_plan import Prices, cheapest_course


@dataclass(frozen=True)
class Promise:
    """Keeps the share within the bound, at the least executor-seconds it can foresee."""

    looks_ahead: ClassVar[bool] = True
    window_periods: ClassVar[int] = 1440

    keep: float = option(
        0.9, "Share of the bound that the slowest results are planned for.",
        least=0.1, greatest=1,
    )  # fmt: skip
    act_price: float = option(
        0.25, "What a change must save, over what all executors cost while a new one starts.",
        least=0.001, greatest=1000, off=0.0,
    )  # fmt: skip
    look_ahead_s: float = option(300.0, "How far ahead it plans changes.", least=1, greatest=86_400)
    step: int = option(
        1, "Processors added or removed at once.", least=1, greatest=1024,
        shown="one executor's slots",
    )  # fmt: skip
    trigger_interval_s: float = option(
        0.0, "Time from the start of one batch to the start of the next, for the model.",
        least=0.001, greatest=3600, off=0.0, shown="batch-interval",
    )  # fmt: skip

    calendar: RateCalendar = field(default_factory=RateCalendar)  # of earlier runs

    @property
    def name(self) -> str:
        return "promise"

    def decide(self, context: ScalingContext) -> Decision[ScalingPlan]:
        """The first step of the cheapest course."""
        inputs = read_promise_inputs(
            context, self.trigger_interval_s, self.look_ahead_s, self.calendar
        )
        if context.newest is None or inputs is None:
            return self._unmeasured(context)
        if context.sharing == "space":
            return decide_apart(context, inputs, self.trigger_interval_s, self.step)
        now = max(1, -(-context.current.processors // self.step))
        act_s = now * (self.act_price * inputs.start_up_s + context.act_price.pause_s)
        needs = find_needs(context, inputs, self.step, self.keep, act_s)
        prices = Prices(act_s / inputs.period_s, inputs.start_up_s / inputs.period_s)
        planned = int(cheapest_course(now, needs.executors, prices, needs.lasts, needs.enough)[0])
        plan = shared_plan(context, planned * self.step)
        gaps = gaps_of(context.newest)
        if plan.processors < context.current.processors and gaps:
            return hold(
                context, f"no scale-in while not measured: {', '.join(gaps)}",
                infeasible=needs.infeasible,
            )  # fmt: skip
        if plan.processors < context.current.processors and inputs.ahead.surprised:
            return hold(
                context,
                f"no scale-in: {inputs.rate_per_s:.4g} rows/s are far above what was expected, "
                "and nobody knows yet how far the load rises",
                infeasible=needs.infeasible,
            )
        latencies_s = (
            needs.latency_at(plan.processors), needs.latency_at(context.current.processors)
        )  # fmt: skip
        numbers = forecast_numbers(
            context, inputs, plan.processors, latencies_s, needs.upper_per_s, self.step
        )
        because = self._because(context, inputs, needs, numbers)
        line = change("processors", context.current.processors, plan.processors, because)
        return Decision(
            plan, (line, *needs.notes), needs.infeasible, numbers, needs.steady_s(inputs)
        )

    def _unmeasured(self, context: ScalingContext) -> Decision[ScalingPlan]:
        newest = context.newest
        seen = newest is not None and not gaps_of(newest) and idle(newest)
        if seen and context.sharing == "time":  # nothing ever came: nothing is needed
            plan = shared_plan(context, min(self.step, context.current.processors))
            line = change("processors", context.current.processors, plan.processors, "nothing came")
            return Decision(plan, (line,))
        return hold(context, "no change: load or cost of a row was not measured yet")

    def _because(
        self,
        context: ScalingContext,
        inputs: PromiseInputs,
        needs: Needs,
        numbers: dict[str, float],
    ) -> str:
        """Why first, then the numbers: latency with and without, load ahead, price of an act."""
        now, after = context.current.processors, numbers["processors"]
        least = needs.first * self.step
        if after > now:
            why = "the load ahead needs them"
        elif after < now:
            why = "the load ahead can do without"
        elif least < now:
            why = f"{least} processors would do, but not for long enough to pay for the change"
        else:
            why = "right for the load ahead"
        latency = f"{numbers['share'] * 100:g}% of results within "
        latency += _seconds(numbers["latency_expected_s"])
        if after != now:
            latency += f", {_seconds(numbers['latency_without_s'])} without the change"
        load = (
            f"{inputs.rate_per_s:.4g} rows/s now, with {inputs.level * 100:.3g}% certainty at most "
            f"{needs.upper_per_s:.4g} within {numbers['ahead_s']:.0f} s by "
            f"{inputs.ahead.forecaster}"
        )
        if after == now:
            return f"{why}: expects {latency}; {load}"
        price = f"the change costs {numbers['price_executor_seconds']:.3g} executor-seconds"
        if pause_s := numbers["price_pause_s"]:
            price += f" and a pause of {pause_s:.2g} s"
        return f"{why}: expects {latency}; {load}; {price}"


def _seconds(value: float) -> str:
    return f"{value:.3g} s" if math.isfinite(value) and value < 1e6 else "no bound"
