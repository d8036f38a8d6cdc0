"""`penstock arena`: policies side by side over scenarios, beside one who knows the load."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from penstock.cli.output import JsonFlag, one_line, print_json
from penstock.cli.settings import ANY_SIZE, HISTORY_KEEPING, NOT_SIMULATED, with_settings
from penstock.config import Settings
from penstock.errors import InvalidInput, Unavailable

if TYPE_CHECKING:
    from penstock.sim.arena import Contest, References, Score
    from penstock.sim.scenario import Scenario

MOST_PROCESSES = 2
FIGURES = (".png", ".svg", ".pdf")
# Each policy has its own options and acts, and none is written to a history.
LEFT_OUT = (
    *NOT_SIMULATED, *HISTORY_KEEPING, "policy", "policy-options", "shadow", "dry-run",
)  # fmt: skip


@with_settings(without=LEFT_OUT, defaults=ANY_SIZE)
def arena(
    scenarios: Annotated[
        list[Path],
        typer.Argument(metavar="SCENARIO.toml", help="Scenarios (penstock docs simulator)."),
    ],
    policies: Annotated[
        str, typer.Option("--policies", metavar="all|NAME,...", help="Policies to run.")
    ] = "all",
    seeds: Annotated[
        int, typer.Option("--seeds", min=1, max=1000, help="Seeds, from the scenario's on.")
    ] = 1,
    plot: Annotated[
        Path | None,
        typer.Option(
            "--plot",
            metavar="FILE",
            help="Draw share in time against executor-seconds to a PNG, SVG or PDF file.",
        ),
    ] = None,
    processes: Annotated[
        int,
        typer.Option("--processes", min=1, max=MOST_PROCESSES, help="Simulations at a time."),
    ] = MOST_PROCESSES,
    as_json: Annotated[bool, JsonFlag] = False,
    *,
    settings: Settings,
) -> None:
    """Compare policies with the least that would do for somebody who knew the load beforehand.

    Each policy is simulated on each scenario, beside the clairvoyant minimum and fixed sizes.
    """
    from penstock.cli.arena_table import entries, print_tables
    from penstock.sim.arena import averaged
    from penstock.sim.run import check_schedule_in

    wanted = _policies(policies)
    loaded = _scenarios(scenarios, settings.share)
    for one in loaded:
        check_schedule_in(one, settings)
    if plot is not None:
        _check_figure(plot)
    contests = _contests(loaded, wanted, seeds, settings, processes)
    if as_json:
        print_json([line for contest in contests for line in entries(contest, seeds > 1)])
    means = [averaged([c for c in contests if c.scenario.name == s.name]) for s in loaded]
    if not as_json:
        print_tables(means)
    if plot is not None:
        from penstock.cli.arena_figure import save

        save(plot, means)
    _complain([score for contest in contests for score in contest.scores])


def _policies(text: str) -> list[str]:
    from penstock.scaling.policies.registry import names, policy_class

    if text == "all":
        return [name for name in names() if name != "static"]  # fixed sizes are there anyway
    wanted = list(dict.fromkeys(part.strip() for part in text.split(",")))
    for name in wanted:
        try:
            policy_class(name)
        except InvalidInput as error:
            raise InvalidInput(
                f"--policies has {name!r}; allowed: all, or names out of {', '.join(names())}."
            ) from error
    return wanted


def _scenarios(paths: Sequence[Path], share: float | None) -> list[Scenario]:
    """With the share of the options, where they have one: for the references as for policies."""
    from penstock.sim.arena import check
    from penstock.sim.scenario_file import load_scenario

    found: dict[str, Path] = {}
    loaded = []
    for path in paths:
        scenario = load_scenario(path, share)
        check(scenario)
        if scenario.name in found:
            raise InvalidInput(
                f"{found[scenario.name]} and {path} are both named {scenario.name!r}; "
                "scenarios of an arena need different names."
            )
        found[scenario.name] = path
        loaded.append(scenario)
    return loaded


def _check_figure(path: Path) -> None:
    from penstock.cli.plotting import require_plotting

    if path.suffix.lower() not in FIGURES:
        raise InvalidInput(f"--plot is {str(path)!r}; its name must end in {', '.join(FIGURES)}.")
    if not path.absolute().parent.is_dir():
        raise InvalidInput(f"--plot is {str(path)!r}; there is no folder {str(path.parent)!r}.")
    require_plotting()


def _contests(
    scenarios: Sequence[Scenario],
    policies: Sequence[str],
    seeds: int,
    settings: Settings,
    processes: int,
) -> list[Contest]:
    from penstock.control.from_settings import settings_of
    from penstock.sim.arena import Contest, run_policy, run_references

    seeded = [replace(s, seed=s.seed + n) for s in scenarios for n in range(seeds)]
    works: list[tuple[str, Callable[..., Any], tuple[Any, ...]]] = []
    for scenario in seeded:
        works.append((f"{scenario.name}: clairvoyant", run_references, (scenario,)))
        for name in policies:
            chosen = settings_of(name, settings)
            works.append((f"{scenario.name}: {name}", run_policy, (scenario, chosen)))
    done = _worked_off(works, processes)
    each = 1 + len(policies)
    contests = []
    for number, scenario in enumerate(seeded):
        references: References = done[number * each]
        scores: tuple[Score, ...] = tuple(done[number * each + 1 : (number + 1) * each])
        contests.append(Contest(scenario, references, scores))
    return contests


def _worked_off(
    works: Sequence[tuple[str, Callable[..., Any], tuple[Any, ...]]], processes: int
) -> list[Any]:
    """What each of some works gives, in their order; a bar shows how many are done."""
    with _progress(len(works)) as step:
        if processes == 1:
            done = []
            for label, work, given in works:
                step(label, 0)
                done.append(work(*given))
                step(label, 1)
            return done
        from multiprocessing import get_context

        with ProcessPoolExecutor(min(processes, len(works)), get_context("spawn")) as pool:
            futures: dict[Future[Any], str] = {
                pool.submit(work, *given): label for label, work, given in works
            }
            try:
                for future in as_completed(futures):
                    step(futures[future], 1)
            except KeyboardInterrupt:
                pool.shutdown(wait=False, cancel_futures=True)
                raise
            return [future.result() for future in futures]


@contextmanager
def _progress(total: int) -> Iterator[Callable[[str, int], None]]:
    """A bar on the terminal; nothing where there is no terminal."""
    if not sys.stderr.isatty():
        yield lambda label, steps: None
        return
    from rich.console import Console
    from rich.progress import MofNCompleteColumn, Progress

    columns = (*Progress.get_default_columns(), MofNCompleteColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("simulating", total=total)
        yield lambda label, steps: bar.update(task, description=one_line(label), advance=steps)


def _complain(scores: Sequence[Score]) -> None:
    failed = [score for score in scores if score.failures]
    if failed:
        first = failed[0]
        raise Unavailable(
            f"stages of the loop failed in {len(failed)} simulations, first {first.policy} on "
            f"{first.scenario}: {first.failures[0]}"
        )
