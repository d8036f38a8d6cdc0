"""The forecast that a decision of `promise` rests on, as the history keeps it."""

from penstock.scaling.policies.policy import ScalingContext
from penstock.scaling.policies.promise_inputs import PromiseInputs


def forecast_numbers(
    context: ScalingContext,
    inputs: PromiseInputs,
    after: int,
    latencies_s: tuple[float, float],
    upper_per_s: float,
    step: int,
) -> dict[str, float]:
    """`latencies_s`: what the share of the results keeps, with the change and without."""
    before, price = context.current.processors, context.act_price
    return {
        "share": context.limits.share,
        "processors": after,
        "latency_expected_s": latencies_s[0],
        "latency_without_s": latencies_s[1],
        "ahead_s": inputs.lead * inputs.period_s,
        "load_per_s": float(inputs.ahead.expected_per_s[inputs.lead - 1]),
        "load_upper_per_s": upper_per_s,
        "load_level": inputs.level,
        "price_executor_seconds": price.executor_seconds(-(-before // step), -(-after // step)),
        "price_pause_s": price.pause_s if before != after else 0.0,
    }
