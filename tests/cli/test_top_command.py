"""`penstock top`: a run that goes on elsewhere, period by period."""

import json
import threading
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from contract.fakes import observation
from dashboard.histories import RUN, START_S, make, write
from penstock.cli import app
from penstock.control.history.following import newest_periods, steps_since
from penstock.control.history.store import HistoryStore
from penstock.control.history.tail import Position, position


def top(*words: str) -> Any:
    return CliRunner().invoke(app, ["top", *words])


def test_a_run_that_has_ended_is_shown_by_its_last_periods(tmp_path: Path) -> None:
    store, run = make(tmp_path)
    run.end(START_S + 99)
    store.close()
    result = top("--history", str(tmp_path / "h.sqlite"))
    assert (result.exit_code, result.stderr) == (0, "")
    lines = result.stdout.splitlines()
    assert "rate 104/s, backlog 30" in lines[-3]
    assert "executors 1 -> 2 (incremental): load 0.9 is above 0.8" in lines[-2]
    assert lines[-1] == "run 1 has ended: penstock history --run 1 --changes"


def test_once_is_the_newest_period_as_text_and_as_json(tmp_path: Path) -> None:
    store, _ = make(tmp_path)
    store.close()
    where = str(tmp_path / "h.sqlite")
    assert len(top("--history", where, "--once").stdout.splitlines()) == 3  # and that it is quiet
    told = json.loads(top("--history", where, "--once", "--json").stdout)
    assert (told["arrival_rate_per_s"], told["executors_wanted"]) == (103.5, 2)
    assert told["latency"]["p95_s"] == 1.875
    assert "step: 2 -> 6 processors cut to 2 -> 4" in told["reasons"]


def test_new_periods_are_shown_until_the_run_ends(tmp_path: Path) -> None:
    """The run goes on in another thread, a period each time the view looks."""
    store, run = make(tmp_path, periods=1)
    waits: list[float] = []

    class Event:
        def wait(self, seconds: float) -> None:
            waits.append(seconds)
            if len(waits) < 3:
                write(run, 1 + len(waits))
            else:
                run.end(START_S + 99)

    with pytest.MonkeyPatch.context() as patched, store:
        patched.setattr("penstock.cli.top.threading", type("T", (), {"Event": Event}))
        words = ("--history", str(tmp_path / "h.sqlite"), "--json", "--every", "0.5")
        lines = top(*words).stdout.splitlines()
    assert [json.loads(line)["at_s"] for line in lines] == [START_S + 5 * n for n in (1, 2, 3)]
    assert waits == [0.5] * 3
    assert threading.Event is not Event


def test_a_reader_sees_each_step_once_with_what_was_done(tmp_path: Path) -> None:
    store, run = make(tmp_path)
    with store:
        steps, seen = steps_since(store, run.run_id, Position())
        assert [step.at_s for step in steps] == [START_S + 5 * n for n in (1, 2, 3)]
        assert steps[-1].outcome is not None
        assert steps[-1].outcome.done
        assert (steps[-1].executors_before, steps[-1].executors_wanted) == (1, 2)
        assert steps_since(store, run.run_id, seen) == ([], seen)
        run.observed(observation(START_S + 20))
        run.flush()
        (alone,), _ = steps_since(store, run.run_id, seen)
        assert (alone.decision, alone.executors_before) == (None, None)
        last = newest_periods(position(store, run.run_id), 2)
        assert [one.at_s for one in steps_since(store, run.run_id, last)[0]] == [
            START_S + 15, START_S + 20,
        ]  # fmt: skip


def test_a_run_without_periods_says_so(tmp_path: Path) -> None:
    where = str(tmp_path / "h.sqlite")
    with HistoryStore(where) as store:
        store.begin(RUN)
    assert top("--history", where, "--once").stdout == "run 1 holds no period yet\n"
    missing = top("9", "--history", where)
    assert missing.exit_code == 2
    assert missing.stderr == f"penstock: RUN is 9; {where} holds: 1 to 1.\n"
