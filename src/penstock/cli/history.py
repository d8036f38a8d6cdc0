"""`penstock history`: what was observed, decided and done in a run, and why."""

from __future__ import annotations

import math
from collections.abc import Callable
from enum import StrEnum
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

from penstock.cli.output import JsonFlag, print_json, print_table
from penstock.cli.settings import HISTORY_HELP, history_place
from penstock.errors import InvalidInput

if TYPE_CHECKING:
    from penstock.control.history.store import HistoryStore
    from penstock.control.records import (
        ActionRecord,
        AllocationRecord,
        DecisionRecord,
        FailureRecord,
        RunRecord,
    )
    from penstock.model.decision import RoomDecision
    from penstock.model.observation import AdmissionRecord, Observation


class Kind(StrEnum):
    """What can be shown of a run."""

    observations = "observations"
    decisions = "decisions"
    shadows = "shadows"
    allocations = "allocations"
    admissions = "admissions"
    elsewhere = "elsewhere"
    actions = "actions"
    failures = "failures"


app = typer.Typer(name="history", invoke_without_command=True)


@app.callback(epilog="Example: penstock history --changes --last 10m")
def history(
    context: typer.Context,
    history: Annotated[str | None, typer.Option("--history", help=HISTORY_HELP)] = None,
    run: Annotated[
        int | None,
        typer.Option("--run", metavar="N", help="Number of the run. Default: the newest."),
    ] = None,
    runs: Annotated[bool, typer.Option("--runs", help="Only list the runs.")] = False,
    show: Annotated[
        list[Kind] | None,
        typer.Option("--show", help="What to show; may be repeated. Default: everything."),
    ] = None,
    changes: Annotated[
        bool, typer.Option("--changes", help="Only what changed something or was meant to.")
    ] = False,
    last: Annotated[
        str | None,
        typer.Option(
            "--last", metavar="DURATION", help="Only the last part of the run, such as 10m."
        ),
    ] = None,
    as_json: Annotated[bool, JsonFlag] = False,
) -> None:
    """Show what was observed, decided and done in a run, and why."""
    from penstock.control.history.store import HistoryStore

    if context.invoked_subcommand is not None:
        if (history, run, show, last) != (None,) * 4 or runs or changes or as_json:
            raise InvalidInput("write options after prune: penstock history prune --age 30d.")
        return
    with HistoryStore(history_place(history), create=False) as store:
        if runs:
            _print_runs(store.runs(), as_json)
            return
        number = run_number(store, run)
        kinds = tuple(show) if show else tuple(Kind)
        found = _read(store, number, kinds, last)
        if changes:
            found = {kind: [one for one in items if _changes(one)] for kind, items in found.items()}
        record = store.runs()[number]
    if as_json:
        print_json({"run": {"id": number, **vars(record)}, **found})
    else:
        _print_events(number, record, found)


@app.command(epilog="Example: penstock history prune --age 30d --mb 500")
def prune(
    history: Annotated[str | None, typer.Option("--history", help=HISTORY_HELP)] = None,
    age: Annotated[
        str | None,
        typer.Option("--age", metavar="DURATION", help="Forget what is older, such as 30d."),
    ] = None,
    mb: Annotated[
        int | None, typer.Option("--mb", min=1, help="Forget the oldest until it takes no more.")
    ] = None,
    as_json: Annotated[bool, JsonFlag] = False,
) -> None:
    """Forget old periods of a history and give their room back; runs do so by themselves."""
    from dataclasses import asdict

    from penstock.control.clock import steady_s
    from penstock.control.history.retention import Retention
    from penstock.control.history.store import HistoryStore
    from penstock.model.durations import parse_duration_s

    if age is None and mb is None:
        raise InvalidInput("say what to keep: --age, --mb, or both.")
    where = history_place(history)
    HistoryStore(where, create=False).close()  # what is not there is refused, not made
    age_s = None if age is None else parse_duration_s(age, "--age")
    kept = Retention(age_s, None if mb is None else mb * 2**20)
    with HistoryStore(where) as store:
        gone = store.prune(kept, steady_s())
    if as_json:
        print_json(asdict(gone))
    else:
        print(f"forgotten: {gone.periods:,} periods, {gone.runs:,} runs")


def run_number(store: HistoryStore, wanted: int | None, called: str = "--run") -> int:
    """The run that is asked for, the newest where none is."""
    known = store.runs()
    if wanted is None:
        return store.latest_run()
    if wanted not in known:
        numbers = f"{min(known)} to {max(known)}" if known else "none yet"
        raise InvalidInput(f"{called} is {wanted}; {store.where} holds: {numbers}.")
    return wanted


def _read(
    store: HistoryStore, run: int, kinds: tuple[Kind, ...], last: str | None
) -> dict[str, list[Any]]:
    from penstock.control.history.store import Within
    from penstock.control.history.tail import newest_s
    from penstock.model.durations import parse_duration_s

    readers: dict[Kind, Callable[..., list[Any]]] = {
        Kind.observations: store.read_observations,
        Kind.decisions: store.read_decisions,
        Kind.shadows: store.read_shadows,
        Kind.allocations: store.read_allocations,
        Kind.admissions: store.read_admissions,
        Kind.elsewhere: store.read_room_decisions,
        Kind.actions: store.read_actions,
        Kind.failures: store.read_failures,
    }
    if last is None:
        return {str(kind): readers[kind](run) for kind in kinds}
    since_s = newest_s(store, run) - parse_duration_s(last, "--last")
    return {
        str(kind): [one for one in readers[kind](run, Within(since_s)) if one.at_s >= since_s]
        for kind in kinds
    }


def _changes(record: Any) -> bool:
    """Whether anything was to be other than it was; what the loop only saw changes nothing."""
    from penstock.control.history.digest import admission_changes
    from penstock.control.records import AllocationRecord, DecisionRecord
    from penstock.model.observation import AdmissionRecord, Observation

    if isinstance(record, DecisionRecord):
        current = record.current.processors
        return not current == record.decision.plan.processors == record.guarded.processors
    if isinstance(record, AllocationRecord):
        return bool(record.moves or record.infeasible)
    if isinstance(record, AdmissionRecord):
        return admission_changes(record)
    return not isinstance(record, Observation)


def _print_runs(runs: dict[int, RunRecord], as_json: bool) -> None:
    if as_json:
        print_json([{"id": number, **vars(record)} for number, record in runs.items()])
        return
    rows = [
        (
            str(number), record.topology, record.policy, date_time(record.started_at_s),
            "" if record.ended_at_s is None else f"{record.ended_at_s - record.started_at_s:.0f} s",
        )
        for number, record in runs.items()
    ]  # fmt: skip
    print_table(("run", "topology", "policy", "started", "lasted"), rows)


def _print_events(number: int, record: RunRecord, found: dict[str, list[Any]]) -> None:
    from penstock.control.step import clock_time

    shown: dict[str, tuple[str, Callable[[Any], str]]] = {
        Kind.observations: ("observed", partial(observation_line, share=record.share)),
        Kind.decisions: ("decided", decision_line),
        Kind.shadows: ("would", decision_line),
        Kind.allocations: ("placed", _allocation_line),
        Kind.admissions: ("admitted", _admission_line),
        Kind.elsewhere: ("decided", _room_line),
        Kind.actions: ("did", action_line),
        Kind.failures: ("failed", _failure_line),
    }
    events = sorted(
        (
            (item.at_s, shown[kind][0], shown[kind][1](item))
            for kind, items in found.items()
            for item in items
        ),
        key=lambda event: event[0],
    )
    title = f"run {number} of {record.topology}, {date_time(record.started_at_s)}"
    rows = [(clock_time(at_s), kind, what) for at_s, kind, what in events]
    print_table(("time", "", "what and why"), rows, title)


def observation_line(o: Observation, share: float | None) -> str:
    """What was measured in a period of a run that promised a share; None: it is not known."""
    from penstock.model.promised_quantile import promised_quantile

    rate, backlog = o.arrival_rate_per_s, o.backlog_rows
    line = f"input {rate:.4g}/s" if math.isfinite(rate) else "input not known"
    line += f", backlog {backlog:.4g} rows" if math.isfinite(backlog) else ", backlog not known"
    line += f", {len(o.nodes)} executors with {o.processors} processors"
    if o.latency is not None:
        late = 1 - o.latency.in_time_share
        name, (kept_s,) = promised_quantile([o.latency], share)
        line += f", latency mean {o.latency.mean_s:.3g} s, {name} within {kept_s:.3g} s"
        line += f", {late:.1%} late"
    for s in o.sources:
        line += f", {s.source}: {len(s.lanes)} lanes for {s.live} streams, {s.waiting_rows} queued"
        line += f", {s.suspended} suspended" if s.suspended else ""
        line += f", {s.malformed_rows} malformed" if s.malformed_rows else ""
        line += "".join(f", {note}" for note in s.notes)
    return line + (f", not measured: {', '.join(o.missing)}" if o.missing else "")


def decision_line(d: DecisionRecord) -> str:
    """What was decided, by whom and why."""
    before, after = d.current.processors, d.guarded.processors
    what = f"processors {before} -> {after}" if before != after else f"processors stay {before}"
    reasons = [*d.decision.reasons, *d.guard_reasons]
    if d.decision.infeasible:
        reasons.append(f"infeasible: {d.decision.infeasible}")
    return f"{what} ({d.policy}{', dry run' if d.dry_run else ''}): {'; '.join(reasons)}"


def _allocation_line(a: AllocationRecord) -> str:
    reasons = [*a.reasons, *([a.holds_scaling] if a.holds_scaling else [])]
    if a.infeasible:
        reasons.append(f"infeasible: {a.infeasible}")
    if a.leaving:
        reasons.append(f"{a.left_on_leaving} key groups left on {', '.join(a.leaving)}")
    what = f"{len(a.moves)} key groups move ({a.policy}{', dry run' if a.dry_run else ''})"
    return f"{what}: {'; '.join(reasons)}"


def _admission_line(record: AdmissionRecord) -> str:
    from penstock.control.history.digest import admission_text

    reasons = "; ".join(record.reasons)
    infeasible = f"; infeasible: {record.infeasible}" if record.infeasible else ""
    return f"{record.strategy}: {admission_text(record)}: {reasons}{infeasible}"


def _room_line(d: RoomDecision) -> str:
    reasons = [*d.reasons, *([f"infeasible: {d.infeasible}"] if d.infeasible else [])]
    said = "; ".join(reasons)
    numbers = ", ".join(_named(name, value) for name, value in d.numbers.items())
    line = f"{d.room} ({d.policy}): {d.what}" + (f": {said}" if said else "")
    return line + (f" ({numbers})" if numbers else "")


def _named(name: str, value: float) -> str:
    """A figure in words.

    >>> _named("expected_gain", 0.113), _named("present_cost", 451.0)
    ('expected gain 11.3%', 'present cost 451')
    >>> _named("pause_s", 1.7), _named("acted_at_s", 90.0)
    ('pause 1.7 s', 'acted at simulated 90s')
    """
    words = name.replace("_", " ")
    if math.isnan(value):
        return f"{words} not known"
    if name.endswith("_at_s"):
        return f"{words.removesuffix(' s')} {date_time(value)}"
    if name.endswith("_s") and not name.endswith("_per_s"):
        return f"{words.removesuffix(' s')} {value:.4g} s"
    return f"{words} {value:.1%}" if name.endswith("gain") else f"{words} {value:.4g}"


def action_line(a: ActionRecord) -> str:
    """What was done."""
    done = "done" if a.outcome.done else "not done"
    return f"{a.outcome.action}: {done} in {a.outcome.took_s:.2g} s, {a.outcome.detail}"


def _failure_line(f: FailureRecord) -> str:
    return f"{f.stage}: {f.message}"


SIMULATED_BELOW_S = 1e8  # a simulated run begins at 0, a real one later than 1973


def date_time(at_s: float) -> str:
    """A moment by the local clock; of a simulated run, as seconds into it."""
    from datetime import UTC, datetime

    if at_s < SIMULATED_BELOW_S:
        return f"simulated {at_s:.0f}s"
    return datetime.fromtimestamp(at_s, tz=UTC).astimezone().strftime("%Y-%m-%d %H:%M:%S")
