"""`penstock plan`: what other policies and sizes would have made of a recorded load."""

from __future__ import annotations

import math
import sys
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from penstock.cli.output import JsonFlag, one_line, print_json, tell
from penstock.cli.plan_cost import cost_document, cost_line, range_text
from penstock.cli.plotting import MISSING, can_plot
from penstock.cli.settings import (
    ANY_SIZE,
    HISTORY_HELP,
    HISTORY_KEEPING,
    NOT_SIMULATED,
    history_place,
    with_settings,
)
from penstock.config import Settings
from penstock.errors import Infeasible, InvalidInput
from penstock.model.number_text import seconds_text, share_text

if TYPE_CHECKING:
    from penstock.control.records import ActionRecord, RunRecord
    from penstock.model.observation import Observation
    from penstock.sim.replay import Candidate, Fidelity

MOST_RATE = 1_000.0
MONTH_DAYS = 30.0
MOST_TRIED = 20  # runs that are looked through for one that is long enough
# It has its own options for executors, policies and the history, which it only reads.
OWN = (*NOT_SIMULATED, *HISTORY_KEEPING, "policy", "shadow", "dry-run")


@dataclass(frozen=True)
class Recording:
    """A run and all that was written of it."""

    number: int
    run: RunRecord
    observations: list[Observation]
    actions: list[ActionRecord]


@with_settings(without=OWN, defaults=ANY_SIZE)
def plan(
    history: Annotated[str | None, typer.Option("--history", help=HISTORY_HELP)] = None,
    number: Annotated[
        int | None,
        typer.Option("--run", metavar="N", help="Number of the run. Default: the newest."),
    ] = None,
    rate: Annotated[
        str, typer.Option("--rate", metavar="xN", help="Multiply the recorded load, such as x2.")
    ] = "x1",
    max_latency: Annotated[
        str | None,
        typer.Option(
            "--max-latency", metavar="DURATION",
            help="Latency bound to plan for. Default: the recorded one.",
        ),
    ] = None,
    policy: Annotated[
        str, typer.Option("--policy", help="Policies to try, such as drs,ds2; or all.")
    ] = "all",
    executors_min: Annotated[
        int | None,
        typer.Option(
            "--executors-min", min=1, max=10_000, help="Fewest executors. Default: as recorded."
        ),
    ] = None,
    executors_max: Annotated[
        int | None,
        typer.Option(
            "--executors-max", min=1, max=10_000, help="Most executors. Default: as recorded."
        ),
    ] = None,
    skip: Annotated[
        str | None,
        typer.Option(
            "--skip", metavar="DURATION",
            help="How much of the beginning to leave out, 0s for none. Default: its start-up.",
        ),
    ] = None,
    tolerance: Annotated[
        float,
        typer.Option(
            "--tolerance", min=0.01, max=10,
            help="Largest error of the replayed mean and 95th percentile at which advice is given.",
        ),
    ] = 0.3,
    price: Annotated[
        float | None,
        typer.Option(
            "--price", min=0.000_001, max=1e6,
            help="Price of an executor-hour, in any currency: adds what each would cost.",
        ),
    ] = None,
    days: Annotated[
        float | None,
        typer.Option(
            "--days", min=0.01, max=3660, help="Days that --price is for. Default: 30."
        ),
    ] = None,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Seed of the simulation.")] = 1,
    out: Annotated[Path, typer.Option("--out", help="Folder for the figure.")] = Path("figures"),
    as_json: Annotated[bool, JsonFlag] = False,
    *,
    settings: Settings,
) -> None:  # fmt: skip
    """Simulate a recorded load under each policy and size: latency, late results and cost.

    The simulator is calibrated on the recorded service times and batch overheads. It first replays
    the run as it was; if that is too far off, no advice is given and the exit code is 3.
    """
    from penstock.model.durations import parse_duration_s
    from penstock.sim.calibration import scenario_of
    from penstock.sim.pricing import bill
    from penstock.sim.replay import (
        best,
        candidates,
        periods_after,
        policies_named,
        replayed,
        sizes_between,
    )
    from penstock.sim.run import AS_OPTIONS, check_schedule_in

    factor, skip_s = _factor(rate), _skip_s(skip)
    bound_s = None if max_latency is None else parse_duration_s(max_latency, "--max-latency")
    policies = _known(policies_named(policy))
    if days is not None and price is None:
        raise InvalidInput("--days is given without --price; give the price too.")
    days = MONTH_DAYS if days is None else days
    whole = _read(history, number)
    try:
        periods = periods_after(whole.run, whole.observations, skip_s)
    except InvalidInput as error:
        raise InvalidInput(f"{error}{_another(history, whole.number, skip_s)}") from error
    recorded = replace(whole, observations=periods)
    fidelity, replay = replayed(recorded.run, recorded.observations, recorded.actions, seed)
    _refuse_if_poor(fidelity, tolerance, whole, recorded, seed)
    scenario = scenario_of(
        recorded.run, recorded.observations, recorded.actions, rate_factor=factor,
        max_latency_s=bound_s, seed=seed, executors=_executors(recorded, executors_min,
                                                               executors_max),
    )  # fmt: skip
    check_schedule_in(scenario, settings, AS_OPTIONS)
    sizes = sizes_between(scenario.cluster.min_executors, scenario.cluster.max_executors)
    tried = list(candidates(scenario, settings, policies, sizes))
    found = [candidate for candidate, _ in tried]
    bills = {} if price is None else {c.name: bill(r, price, 24 * days, seed) for c, r in tried}
    share = scenario.limits.share if settings.share is None else settings.share
    advised = best(found, share)
    figures: list[Path] = []
    if can_plot():
        from penstock.cli.plan_figure import save

        bound_s = scenario.max_latency_s
        figures = save(out, recorded.observations, replay.observations, found, bound_s)
    else:
        tell(f"penstock: {MISSING}")
    answer = {
        "run": recorded.number, "topology": recorded.run.topology, "rate": factor,
        "skipped_s": _skipped_s(whole, recorded),
        "max_latency_s": scenario.max_latency_s, "share": share,
        "fidelity": _fidelity(fidelity),
        "candidates": found, "advice": None if advised is None else advised.name,
        "figures": [str(figure) for figure in figures],
        **cost_document(price, days, bills, periods),
    }  # fmt: skip
    if as_json:
        print_json(answer)
    else:
        _print(answer, fidelity, found, advised)
    if advised is None:
        nearest = max(found, key=lambda c: (c.in_time_share, -c.executor_seconds))
        kept = f"the nearest is {nearest.name} with {share_text(nearest.in_time_share)}"
        raise Infeasible(
            f"nothing within {scenario.cluster.max_executors} executors keeps "
            f"{100 * share:g}% of results within {scenario.max_latency_s:g} s; "
            f"{kept if nearest.in_time_share > 0 else 'none brings any of them in time'}."
        )


def _factor(text: str) -> float:
    digits = text.strip().lower().removeprefix("x")
    try:
        factor = float(digits)
    except ValueError:
        factor = math.nan
    if not 0 < factor <= MOST_RATE:
        raise InvalidInput(
            f"--rate is {text!r}; give a factor above 0 and up to {MOST_RATE:g}, such as x2."
        )
    return factor


def _known(policies: tuple[str, ...]) -> tuple[str, ...]:
    from penstock.scaling.policies.registry import names

    for name in policies:
        if name not in names():
            raise InvalidInput(f"--policy names {name!r}; allowed: {', '.join(names())}, or all.")
    return tuple(name for name in policies if name != "static")  # each static size is tried anyway


def _read(history: str | None, number: int | None) -> Recording:
    from penstock.control.history.store import HistoryStore

    with HistoryStore(history_place(history), create=False) as store:
        runs = store.runs()
        wanted = store.latest_run() if number is None else number
        if wanted not in runs:
            raise InvalidInput(
                f"--run is {number}; {store.where} holds {min(runs)} to {max(runs)}."
            )
        return Recording(
            wanted, runs[wanted], store.read_observations(wanted), store.read_actions(wanted)
        )


def _another(history: str | None, refused: int, skip_s: float | None) -> str:
    """A run of the same history that is long enough, if the newest ones hold one."""
    from penstock.control.history.store import HistoryStore
    from penstock.sim.replay import periods_after

    with HistoryStore(history_place(history), create=False) as store:
        for number, run in sorted(store.runs().items(), reverse=True)[:MOST_TRIED]:
            with suppress(InvalidInput):
                if number != refused and periods_after(
                    run, store.read_observations(number), skip_s
                ):
                    return f" Run {number} of this history is long enough: --run {number}."
    return ""


def _executors(recorded: Recording, fewest: int | None, most: int | None) -> tuple[int, int] | None:
    if fewest is None and most is None:
        return None
    run = recorded.run
    seen = max((len(o.nodes) for o in recorded.observations), default=1)
    low = fewest if fewest is not None else min(run.executors_min, most or run.executors_min)
    high = most if most is not None else max(run.executors_max, seen, low)
    if low > high:
        raise InvalidInput(
            f"--executors-min is {low}; it must be at most --executors-max, which is {high}."
        )
    return low, high


def _fidelity(fidelity: Fidelity) -> dict[str, float]:
    errors = {"mean_error": fidelity.mean_error, "p95_error": fidelity.p95_error}
    return {**vars(fidelity), **errors}


def _refuse_if_poor(
    fidelity: Fidelity, tolerance: float, whole: Recording, recorded: Recording, seed: int
) -> None:
    if fidelity.within(tolerance):
        return
    from penstock.sim.replay import trusted_from_s

    skipped_s = _skipped_s(whole, recorded)
    from_s = trusted_from_s(
        recorded.run, recorded.observations, recorded.actions, seed, tolerance
    )  # fmt: skip
    worst = max(fidelity.mean_error, fidelity.p95_error)
    mend = (
        f"--skip {math.ceil(skipped_s + from_s)}s would bring it within that"
        if from_s is not None
        else "what helps is a longer run, on a machine with nothing else on it"
        + (f", or --tolerance {math.ceil(100 * worst) / 100:g}" if math.isfinite(worst) else "")
    )
    raise Infeasible(
        f"no advice: replayed as it was{_left_out(skipped_s)}, run {recorded.number} of "
        f"{recorded.run.topology} has {_compared(fidelity)}; --tolerance allows {tolerance:.0%}; "
        f"{mend}."
    )


def _skip_s(text: str | None) -> float | None:
    from penstock.model.durations import parse_duration_s

    if text is None or text.strip() in ("0", "0s"):
        return None if text is None else 0.0
    return parse_duration_s(text, "--skip")


def _skipped_s(whole: Recording, recorded: Recording) -> float:
    from penstock.sim.calibration import began_s

    return began_s(recorded.observations) - began_s(whole.observations)


def _left_out(skipped_s: float) -> str:
    return f" without its first {skipped_s:.0f} s" if skipped_s else ""


def _compared(f: Fidelity) -> str:
    return (
        f"a mean latency of {f.simulated_mean_s:.3g} s where {f.recorded_mean_s:.3g} s was "
        f"recorded (error {f.mean_error:.0%}) and a 95th percentile of {f.simulated_p95_s:.3g} s "
        f"where {f.recorded_p95_s:.3g} s was (error {f.p95_error:.0%})"
    )


def _print(
    answer: dict[str, Any], fidelity: Fidelity, found: list[Candidate], advised: Candidate | None
) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    print(
        f"run {answer['run']} of {one_line(answer['topology'])}: load x{answer['rate']:g}, bound "
        f"{answer['max_latency_s']:g} s; replayed as it was{_left_out(answer['skipped_s'])}, it "
        f"has {_compared(fidelity)}"
    )
    table = Table()
    table.add_column("policy or size")
    bills = answer.get("cost", {}).get("bills", {})
    heads = ["in time", "late rows", "mean", "95%", "executor-s", "most", "changes"]
    for head in [*heads, *(["cost"] if bills else [])]:
        table.add_column(head, justify="right")
    for c in found:
        table.add_row(
            Text(c.name), share_text(c.in_time_share), f"{c.late_rows:,}",
            seconds_text(c.latency_mean_s), seconds_text(c.latency_p95_s),
            f"{c.executor_seconds:,.0f}", str(c.executors_most), str(c.reconfigurations),
            *([range_text(bills[c.name])] if bills else []),
            style="bold" if c is advised else None,
        )  # fmt: skip
    Console(width=None if sys.stdout.isatty() else 120).print(table)
    if advised is not None:
        print(
            f"advice: {advised.name}, the cheapest that keeps {100 * answer['share']:g}% of "
            f"results within {answer['max_latency_s']:g} s"
        )
        if bills:
            print(cost_line(answer["cost"], bills[advised.name]))
    if answer["figures"]:
        print(f"figure: {answer['figures'][0]}")
