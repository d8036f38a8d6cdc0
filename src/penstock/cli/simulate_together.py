"""`penstock simulate A.toml B.toml ...`: scenarios that share one simulated cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from penstock.cli.output import one_line, print_json
from penstock.model.number_text import share_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from penstock.config import Settings
    from penstock.sim.scenario import Scenario
    from penstock.sim.together import Portioned, TogetherResult


def simulate_several(
    scenarios: Sequence[Scenario], executors: int | None, settings: Settings, as_json: bool
) -> None:
    """Run them under the arbiter and beside fixed equal parts, and show both."""
    from penstock.sim.together import simulate_apart, simulate_together

    shared = simulate_together(scenarios, executors, settings)
    fixed = simulate_apart(scenarios, executors)
    if as_json:
        print_json(_summary(shared, fixed, settings))
    else:
        _print_lines(shared, fixed, settings)


def _summary(
    shared: TogetherResult, fixed: TogetherResult, settings: Settings
) -> dict[str, Any]:  # fmt: skip
    return {
        "policy": settings.policy,
        "executors": shared.executors,
        "topologies": [_part(part) for part in shared.parts],
        "executor_seconds": shared.executor_seconds,
        "equal_parts": {
            "topologies": [_part(part) for part in fixed.parts],
            "executor_seconds": fixed.executor_seconds,
        },
        "divisions": [
            {
                "at_s": change.at_s,
                "processors": dict(change.decision.plan.processors),
                "executors": change.decision.plan.executors,
                "missed": dict(change.decision.plan.missed),
                "reasons": list(change.decision.reasons),
            }
            for change in shared.changes
        ],
    }


def _part(part: Portioned) -> dict[str, Any]:
    scenario = part.scenario
    return {
        "scenario": scenario.name,
        "weight": scenario.weight,
        "max_latency_s": scenario.max_latency_s,
        "share": scenario.share,
        "in_time_share": part.in_time_share,
        "latency_p95_s": part.results.quantile_s(0.95),
        "result_rows": part.results.count,
        "arrived_rows": part.arrived_rows,
        "held_rows": part.held_rows,
        "processor_seconds": part.processor_seconds,
    }


def _print_lines(shared: TogetherResult, fixed: TogetherResult, settings: Settings) -> None:
    from datetime import UTC

    from penstock.control.step import clock_time

    for change in shared.changes:
        given = ", ".join(f"{n} {k}" for n, k in change.decision.plan.processors.items())
        why = "; ".join(change.decision.reasons)
        print(one_line(f"{clock_time(change.at_s, UTC)} processors: {given}: {why}"))
    for part, alone in zip(shared.parts, fixed.parts, strict=True):
        print(
            one_line(
                f"{part.scenario.name}: {share_text(part.in_time_share)} of {part.results.count} "
                f"results within {part.scenario.max_latency_s:g} s; "
                f"{share_text(alone.in_time_share)} with a fixed equal part"
            )
        )
    print(
        f"{len(shared.parts)} scenarios under {settings.policy} on up to {shared.executors} "
        f"executors: {shared.executor_seconds:.0f} executor-seconds, "
        f"{fixed.executor_seconds:.0f} with fixed equal parts"
    )
