"""What a run came to: the promise kept or not, its cost, and what fixed sizes would have cost."""

from collections.abc import Sequence
from dataclasses import dataclass

from penstock.control.step import Step
from penstock.model.observation import Observation


@dataclass(frozen=True)
class RunSummary:
    """The figures a person asks for at the end of a run."""

    duration_s: float
    results: int
    in_time_share: float  # NaN when there were no results
    latency_mean_s: float
    latency_max_s: float
    max_latency_s: float
    executor_seconds: float
    static_min_executor_seconds: float
    static_max_executor_seconds: float
    reconfigurations: int
    decisions: tuple[str, ...]  # one line for each that changed something
    shed_rows: int = 0  # as sources counted them; no results


def summarise_run(
    observations: Sequence[Observation],
    steps: Sequence[Step],
    max_latency_s: float,
    executors_min: int,
    executors_max: int,
) -> RunSummary:
    """Sum a run up from its periods; executors being drained still cost."""
    duration_s = sum(o.period_s for o in observations)
    told = [o.latency for o in observations if o.latency is not None]
    results = sum(latency.count for latency in told)
    nan = float("nan")
    return RunSummary(
        duration_s=duration_s,
        results=results,
        in_time_share=(
            sum(latency.count * latency.in_time_share for latency in told) / results
            if results
            else nan
        ),
        latency_mean_s=(
            sum(latency.count * latency.mean_s for latency in told) / results if results else nan
        ),
        latency_max_s=max((latency.max_s for latency in told), default=nan),
        max_latency_s=max_latency_s,
        executor_seconds=sum(len(o.nodes) * o.period_s for o in observations),
        static_min_executor_seconds=executors_min * duration_s,
        static_max_executor_seconds=executors_max * duration_s,
        reconfigurations=sum(1 for step in steps if step.carried_out),
        decisions=tuple(step.line() for step in steps if step.changes),
        shed_rows=int(sum(d.numbers.get("shed_rows", 0) for o in observations for d in o.decided)),
    )
