"""`penstock simulate`: a scenario under a policy on a simulated cluster."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from penstock.cli.output import JsonFlag, one_line, print_json
from penstock.cli.settings import ANY_SIZE, HISTORY_KEEPING, NOT_SIMULATED, with_settings
from penstock.config import Settings
from penstock.errors import InvalidInput, Unavailable
from penstock.model.number_text import seconds_text, share_text

if TYPE_CHECKING:
    from penstock.control.step import Step
    from penstock.scaling.policies.policy import ScalingPolicy
    from penstock.sim.run import SimulationResult
    from penstock.sim.scenario import Scenario


@with_settings(
    without=NOT_SIMULATED,
    defaults=ANY_SIZE,
    needs=dict.fromkeys(HISTORY_KEEPING, "history"),
)
def simulate(
    scenario: Annotated[
        list[Path],
        typer.Argument(
            metavar="SCENARIO.toml",
            help="The scenario (penstock docs simulator); several share one cluster.",
        ),
    ],
    executors: Annotated[
        int | None,
        typer.Option(
            "--executors",
            min=1,
            max=100_000,
            help="Of the cluster that several scenarios share. Default: the sum of what each may "
            "have.",
        ),
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option("--seed", min=0, help="Seed of the simulation. Default: the scenario's."),
    ] = None,
    history: Annotated[
        str | None,
        typer.Option(
            "--history", help="Also record the run in this history: a file or an SQLAlchemy URL."
        ),
    ] = None,
    as_json: Annotated[bool, JsonFlag] = False,
    *,
    settings: Settings,
) -> None:
    """Run a scenario on a simulated cluster and show how the policy did.

    Several scenarios run on one cluster, which is divided among them by their promises, and beside
    that with a fixed equal part each.
    """
    from dataclasses import replace

    from penstock.control.from_settings import policy_of, shadow_policies
    from penstock.sim.run import check_schedule_in, settings_in
    from penstock.sim.scenario_file import load_scenario

    # What is shown is what was planned for.
    scenarios = [load_scenario(path, settings.share) for path in scenario]
    if seed is not None:
        scenarios = [replace(one, seed=seed + place) for place, one in enumerate(scenarios)]
    for one in scenarios:
        check_schedule_in(one, settings)
    if len(scenarios) > 1:
        _several(scenarios, executors, settings, history, as_json)
        return
    if executors is not None:
        raise InvalidInput("--executors is for several scenarios; one has its own [cluster].")
    (wanted,) = scenarios
    settings = settings_in(wanted, settings)
    policy, shadows = policy_of(settings), shadow_policies(settings)
    if shadows and history is None:
        raise InvalidInput(
            "--shadow needs --history, where the decisions of shadow policies are kept."
        )
    result = _run(wanted, policy, shadows, settings, history)
    if as_json:
        print_json(_summary(result))
    else:
        _print_lines(result)
    failures = [failure for step in result.steps for failure in step.failures]
    if failures:
        first = f"{failures[0].stage}: {failures[0].message}"
        raise Unavailable(f"{len(failures)} stages of the loop failed, the first was {first}")


def _several(
    scenarios: list[Scenario],
    executors: int | None,
    settings: Settings,
    history: str | None,
    as_json: bool,
) -> None:
    from penstock.cli.simulate_together import simulate_several

    if history is not None or settings.shadow:
        raise InvalidInput("--history and --shadow are for one scenario; several are given.")
    if settings.dry_run:
        raise InvalidInput(
            "--dry-run is for one scenario; several are shown beside fixed equal parts anyway."
        )
    simulate_several(scenarios, executors, settings, as_json)


def _run(
    scenario: Scenario,
    policy: ScalingPolicy,
    shadows: tuple[ScalingPolicy, ...],
    settings: Settings,
    where: str | None,
) -> SimulationResult:
    from penstock.control.experience import with_experience
    from penstock.control.foresight import Foresight
    from penstock.control.forms import tried_before
    from penstock.control.from_settings import policy_of, shadow_policies
    from penstock.control.history.store import HistoryStore, retention
    from penstock.control.records import RunRecord
    from penstock.sim.run import simulate as run

    foresight = Foresight(settings.foresight_s)
    with _progress(scenario.duration_s) as on_step:
        if where is None:
            return run(scenario, policy, settings=settings, on_step=on_step, foresight=foresight)
        with HistoryStore(where) as store:
            learnt = with_experience(
                settings, store, scenario.name, scenario.max_latency_s, scenario.sharing
            )
            policy, shadows = policy_of(learnt), shadow_policies(learnt)
            # A simulated run begins at its own time 0, as its observations say.
            kept = store.begin(
                RunRecord(
                    scenario.name, policy.name, 0.0, scenario.period_s, scenario.max_latency_s,
                    scenario.cluster.slots, settings.dry_run, edges=scenario.edges,
                    executors_min=scenario.cluster.min_executors,
                    executors_max=scenario.cluster.max_executors,
                    batch_interval_s=scenario.batch.trigger_s, foresight_s=settings.foresight_s,
                    share=scenario.share,
                ),
                retention(settings),
            )  # fmt: skip
            result = run(
                scenario, policy, settings=settings, history=kept, on_step=on_step,
                shadows=shadows, foresight=foresight,
                form_costs=tried_before(store, scenario.name, scenario.forms),
            )  # fmt: skip
            kept.end(scenario.duration_s)
            return result


@contextmanager
def _progress(duration_s: float) -> Iterator[Callable[[Step], None] | None]:
    """A bar on the terminal, as the end is known; nothing where there is no terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("simulating", total=duration_s)
        yield lambda step: bar.update(task, completed=step.at_s)


def _summary(result: SimulationResult) -> dict[str, Any]:
    results, (least, most) = result.results, result.static_executor_seconds
    return {
        "scenario": result.scenario.name,
        "policy": result.policy,
        "seed": result.scenario.seed,
        "duration_s": result.scenario.duration_s,
        "max_latency_s": result.scenario.max_latency_s,
        "arrived_rows": result.arrived_rows,
        "result_rows": results.count,
        "held_rows": result.held_rows,
        "shed_rows": result.shed_rows,
        "in_time_share": result.in_time_share,
        "latency_mean_s": results.mean_s,
        "latency_p95_s": results.quantile_s(0.95),
        "executor_seconds": result.executor_seconds,
        "static_min_executor_seconds": least,
        "static_max_executor_seconds": most,
        "decisions": [
            {
                "at_s": step.at_s,
                "executors_before": step.executors_before,
                "executors_wanted": step.executors_wanted,
                "done": step.outcome is not None and step.outcome.done,
                "reasons": [*step.decision.decision.reasons, *step.decision.guard_reasons],
                "infeasible": step.decision.decision.infeasible,
                "also": [{"what": d.what, "reasons": list(d.reasons)} for d in step.room_decisions],
            }
            for step in result.steps
            if step.decision is not None
        ],
    }


def _print_lines(result: SimulationResult) -> None:
    from datetime import UTC

    for step in result.steps:
        if not (step.carried_out or step.room_decisions):
            continue
        print(one_line(step.line(UTC)))
    s = _summary(result)
    print(
        f"{s['scenario']} under {s['policy']}, seed {s['seed']}: "
        f"{share_text(s['in_time_share'])} of {s['result_rows']} results within "
        f"{s['max_latency_s']:g} s (mean {seconds_text(s['latency_mean_s'])}, "
        f"p95 {seconds_text(s['latency_p95_s'])}); "
        f"{s['executor_seconds']:.0f} executor-seconds, static minimum "
        f"{s['static_min_executor_seconds']:.0f}, maximum {s['static_max_executor_seconds']:.0f}"
        + (f"; {s['shed_rows']} of {s['arrived_rows']} rows shed" if s["shed_rows"] else "")
    )
