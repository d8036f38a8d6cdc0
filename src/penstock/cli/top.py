"""`penstock top`: the live view of a run somewhere else, over its history."""

from __future__ import annotations

import sys
import threading
from typing import TYPE_CHECKING, Annotated, Any

import typer

from penstock.cli.history import run_number
from penstock.cli.output import JsonFlag
from penstock.cli.settings import HISTORY_HELP, history_place

if TYPE_CHECKING:
    from penstock.control.records import RunRecord
    from penstock.control.step import Step

PERIODS_AT_FIRST = 30  # of what there is, so that the last decisions are on the screen
QUIET_PERIODS = 3.0  # without anything new, before that is said


def top(
    run: Annotated[
        int | None, typer.Argument(metavar="[RUN]", help="Number of the run. Default: the newest.")
    ] = None,
    history: Annotated[str | None, typer.Option("--history", help=HISTORY_HELP)] = None,
    every: Annotated[
        float, typer.Option("--every", min=0.1, max=3600, metavar="S", help="Look every S seconds.")
    ] = 1.0,
    once: Annotated[
        bool, typer.Option("--once", help="Show the newest period and end.")
    ] = False,
    as_json: Annotated[bool, JsonFlag] = False,
) -> None:  # fmt: skip
    """Watch a run that goes on elsewhere: load, latency, executors and the last decisions.

    Ends with the run, or with Ctrl-C. Without a terminal, each period is a line; with --json, each
    is a JSON object on a line.
    """
    from penstock.control.history.following import newest_periods, steps_since
    from penstock.control.history.store import HistoryStore
    from penstock.control.history.tail import position

    with HistoryStore(history_place(history), create=False) as store:
        number = run_number(store, run, "RUN")
        now = position(store, number)
        seen = newest_periods(now, 1 if once else PERIODS_AT_FIRST)
        shown = _Shown(number, store.runs()[number], as_json, joined=seen.observations > 0)
        with shown.view.shown():
            while True:
                ended = store.runs()[number].ended_at_s is not None
                steps, seen = steps_since(store, number, seen)
                shown.take(steps)
                if once or ended:
                    break
                threading.Event().wait(every)
        shown.end(ended)


class _Shown:
    """What is on the screen, or on standard output."""

    def __init__(self, number: int, record: RunRecord, as_json: bool, joined: bool) -> None:
        from penstock.cli.live import LiveView

        self._number, self._record, self._json = number, record, as_json
        title = f"run {number} of {record.topology}, {record.policy}"
        out = sys.stderr if as_json else sys.stdout
        self.view = LiveView(title, record.max_latency_s, None, out, joined, record.share)
        self.view.notes = self._notes
        self._newest_s: float | None = None

    def take(self, steps: list[Step]) -> None:
        for step in steps:
            self._newest_s = step.at_s
            if self._json:
                _print_line(step)
            else:
                self.view.step(step)
        if not steps and not self._json:
            self.view.look()

    def end(self, ended: bool) -> None:
        if self._newest_s is None and not self._json:
            print(f"run {self._number} holds no period yet")
        elif not self._json and ended:
            print(f"run {self._number} has ended: penstock history --run {self._number} --changes")

    def _notes(self) -> tuple[str, ...]:
        from penstock.control.clock import steady_s

        if self._newest_s is None or self._record.ended_at_s is not None:
            return ()
        quiet_s = steady_s() - self._newest_s
        if quiet_s < QUIET_PERIODS * self._record.period_s:
            return ()
        return ("nothing new for some periods: the run may have ended without saying so",)


def _print_line(step: Step) -> None:
    import json

    from penstock.documents import plain

    seen, made = step.observation, step.decision
    assert seen is not None
    shown: dict[str, Any] = {
        "at_s": step.at_s, "arrival_rate_per_s": seen.arrival_rate_per_s,
        "backlog_rows": seen.backlog_rows, "latency": seen.latency, "executors": len(seen.nodes),
        "processors": seen.processors, "executors_wanted": step.executors_wanted,
        "reasons": () if made is None else (*made.decision.reasons, *made.guard_reasons),
        "infeasible": None if made is None else made.decision.infeasible,
        "failures": step.failures,
    }  # fmt: skip
    print(json.dumps(plain(shown), allow_nan=False), flush=True)
