"""`penstock why`: one decision in plain words, and why it was not more and not fewer."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Annotated, Any

import typer

from penstock.cli.history import (
    action_line,
    date_time,
    decision_line,
    observation_line,
    run_number,
)
from penstock.cli.moments import moment_s
from penstock.cli.output import JsonFlag, one_line, print_json, print_table
from penstock.cli.settings import HISTORY_HELP, history_place, with_settings
from penstock.config import Settings

if TYPE_CHECKING:
    from penstock.control.alternatives import Alternative, Why
    from penstock.control.history.moment import Moment


@with_settings(only=("share", "policy-options"))
def why(
    run: Annotated[
        int | None,
        typer.Argument(metavar="[RUN]", help="Number of the run. Default: the newest."),
    ] = None,
    at: Annotated[
        str | None,
        typer.Option(
            "--at", metavar="TIME",
            help="The decision that held then: 14:05:30, 2026-05-01T14:05, or 90s into the run. "
            "Default: the last one.",
        ),
    ] = None,
    history: Annotated[str | None, typer.Option("--history", help=HISTORY_HELP)] = None,
    as_json: Annotated[bool, JsonFlag] = False,
    *,
    settings: Settings,
) -> None:  # fmt: skip
    """Explain a decision: its reasons, its numbers, and why not more or fewer executors.

    The policy is asked again from what was recorded, and latency is foretold for other sizes.
    """
    from penstock.control import alternatives
    from penstock.control.history.moment import last_change_s, moment_of
    from penstock.control.history.store import HistoryStore

    with HistoryStore(history_place(history), create=False) as store:
        number = run_number(store, run, "RUN")
        until_s = None if at is None else moment_s(at, "--at", store.runs()[number])
        moment = moment_of(store, number, until_s)
        changed_s = last_change_s(store, number, moment.decision.at_s)
    found = alternatives.why(moment, settings)
    if as_json:
        print_json(_document(number, moment, found, changed_s))
    else:
        _print(number, moment, found, changed_s)


def _document(number: int, moment: Moment, found: Why, changed_s: float | None) -> dict[str, Any]:
    made, seen = found.decision, found.observation
    return {
        "run": number,
        "topology": moment.run.topology,
        "decision": made,
        "observation": None if seen is None else {
            "at_s": seen.at_s, "arrival_rate_per_s": seen.arrival_rate_per_s,
            "backlog_rows": seen.backlog_rows, "executors": len(seen.nodes),
            "processors": seen.processors, "latency": seen.latency,
        },
        "outcomes": moment.outcomes,
        "max_latency_s": found.max_latency_s,
        "share": found.share,
        "planned_rate_per_s": found.planned_rate_per_s,
        "alternatives": found.alternatives,
        "notes": found.notes,
        "last_change_s": changed_s,
    }  # fmt: skip


def _print(number: int, moment: Moment, found: Why, changed_s: float | None) -> None:
    made, topology = found.decision, moment.run.topology
    print(one_line(f"run {number} of {topology}, {date_time(made.at_s)}: {decision_line(made)}"))
    if found.observation is not None:
        print(one_line(f"seen: {observation_line(found.observation, moment.run.share)}"))
    for act in moment.outcomes:
        print(one_line(f"done: {action_line(act)}"))
    rate = found.planned_rate_per_s
    load = f", for {rate:,.0f} rows/s" if math.isfinite(rate) else ""
    print(
        f"\nWhy not fewer, why not more? ({found.share * 100:g}% of results within "
        f"{found.max_latency_s:g} s are promised{load})"
    )
    heads = ("executors", "results within", "from there", "why")
    print_table(heads, [_row(one, moment) for one in found.alternatives])
    for note in found.notes:
        print(one_line(f"note: {note}"))
    if changed_s is not None and changed_s < made.at_s:
        when = date_time(changed_s)
        at = when.removeprefix("simulated ").replace(" ", "T")
        print(f"Executors were last changed at {when}: penstock why {number} --at {at}")


def _row(one: Alternative, moment: Moment) -> tuple[str, ...]:
    slots = moment.run.slots_per_executor
    now = one.processors == moment.decision.current.processors
    size = f"{one.executors}{' (there)' if now else ''}{' (chosen)' if one.chosen else ''}"
    return size, _latency(one.latency_s), _then(one, slots), one.verdict


def _then(one: Alternative, slots: int) -> str:
    if one.asks_for is None:
        return "-"
    then = -(-one.asks_for // slots)
    return "stays" if then == one.executors else f"to {then}"


def _latency(latency_s: float) -> str:
    if math.isnan(latency_s):
        return "-"
    return "pile up" if math.isinf(latency_s) else f"{latency_s:.3g} s"
