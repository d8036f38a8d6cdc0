"""`penstock history`: what a person and a program see of a run."""

import json
import math
import os
import pty
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from contract.fakes import observation, rich_observation
from penstock.cli import app
from penstock.control.actions import Outcome, SetExecutors
from penstock.control.history.store import HistoryStore
from penstock.control.records import ActionRecord, DecisionRecord, FailureRecord, RunRecord
from penstock.model.decision import Decision, ScalingPlan

START_S = 1_750_000_000.0


def decision(at_s: float, before: int, suggested: int, after: int) -> DecisionRecord:
    reasons = (f"reports: wants {suggested}",)
    return DecisionRecord(
        at_s, "incremental", ScalingPlan({"reports": before}, before),
        Decision(ScalingPlan({"reports": suggested}, suggested), reasons),
        ScalingPlan({"reports": after}, after),
    )  # fmt: skip


@pytest.fixture
def database(tmp_path: Path) -> str:
    where = str(tmp_path / "h.sqlite")
    with HistoryStore(where) as store:
        store.begin(RunRecord("older", "static", START_S - 9999, 5.0, 5.0)).end(START_S - 9000)
        run = store.begin(RunRecord("road", "incremental", START_S, 5.0, 5.0, share=0.99))
        run.observed(rich_observation(START_S + 5))
        run.decided(decision(START_S + 5, 1, 1, 1))
        run.observed(observation(START_S + 10))
        run.decided(decision(START_S + 10, 1, 2, 2))
        run.acted(ActionRecord(START_S + 10, Outcome(SetExecutors(2), True, "1 new", 0.5)))
        run.failed(FailureRecord(START_S + 15, "policy", "ValueError: \x1b[31m bad\nluck"))
        run.end(START_S + 20)
    return where


def invoke(*arguments: str) -> Any:
    return CliRunner().invoke(app, ["history", *arguments])


def lines(result: Any) -> list[str]:
    assert (result.exit_code, result.stderr) == (0, "")
    return [line.split("  ", 1)[1] for line in result.stdout.splitlines()]


def test_events_are_lines_in_order_of_time(database: str) -> None:
    shown = lines(invoke("--history", database))
    assert [line.split("  ")[0] for line in shown] == [
        "observed", "decided", "observed", "decided", "did", "failed",
    ]  # fmt: skip
    assert shown[3] == "decided  processors 1 -> 2 (incremental): reports: wants 2"
    assert shown[4] == "did  executors -> 2: done in 0.5 s, 1 new"
    assert shown[5] == "failed  policy: ValueError: ?[31m bad luck"
    assert "not measured: latency p95, state 'size'" in shown[0]
    assert "latency mean 0.7 s, 99% within 2.4 s, 5.0% late" in shown[0]


def test_json_holds_the_same_numbers_as_the_history(database: str) -> None:
    result = invoke("--history", database, "--json")
    data = json.loads(result.stdout, parse_constant=lambda name: pytest.fail(name))
    assert data["run"]["topology"] == "road"
    with HistoryStore(database, create=False) as store:
        seen = store.read_observations(data["run"]["id"])
    assert [o["at_s"] for o in data["observations"]] == [o.at_s for o in seen]
    assert math.isnan(seen[0].backlog_rows)
    assert data["observations"][0]["backlog_rows"] is None
    assert (data["run"]["share"], data["observations"][0]["latency"]["share_s"]) == (0.99, 2.4)
    assert data["observations"][0]["components"][0]["key_groups"]["load_s"][0] == 0.1
    assert data["decisions"][1]["decision"]["plan"]["processors"] == 2
    assert data["actions"][0]["outcome"]["action"] == {"total": 2, "leaving": []}
    assert data["failures"][0]["stage"] == "policy"


def test_filters_by_kind_by_change_and_by_time(database: str) -> None:
    assert len(lines(invoke("--history", database, "--show", "decisions"))) == 2
    assert (
        len(lines(invoke("--history", database, "--show", "decisions", "--show", "actions"))) == 3
    )
    assert len(lines(invoke("--history", database, "--show", "decisions", "--changes"))) == 1
    assert len(lines(invoke("--history", database, "--last", "5s"))) == 4
    only = json.loads(invoke("--history", database, "--json", "--show", "actions").stdout)
    assert set(only) == {"run", "actions"}


def test_runs_can_be_listed_and_chosen(database: str) -> None:
    assert len(invoke("--history", database, "--runs").stdout.splitlines()) == 2
    listed = json.loads(invoke("--history", database, "--runs", "--json").stdout)
    assert [run["topology"] for run in listed] == ["older", "road"]
    older = invoke("--history", database, "--run", str(listed[0]["id"]))
    assert (older.exit_code, older.stdout) == (0, "")
    missing = invoke("--history", database, "--run", "99")
    assert missing.exit_code == 2
    assert "--run is 99; " in missing.stderr


def test_the_options_say_where_the_history_is(
    database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    absent = invoke()
    assert absent.exit_code == 2
    assert absent.stderr.startswith("penstock: there is no history at penstock.sqlite")
    monkeypatch.setenv("PENSTOCK_HISTORY", database)
    assert len(lines(invoke())) == 6


@pytest.mark.parametrize("make", ["directory", "garbage", "empty"])
def test_what_is_no_history_is_refused(tmp_path: Path, make: str) -> None:
    path = tmp_path / "x"
    if make == "directory":
        path.mkdir()
    else:
        path.write_bytes(bytes(range(256)) * 20 if make == "garbage" else b"")
    result = invoke("--history", str(path))
    assert result.exit_code in (1, 2)
    assert result.stderr.startswith("penstock: ")
    assert result.stderr.count("\n") == 1
    assert result.stdout == ""


def test_a_bad_duration_is_refused(database: str) -> None:
    result = invoke("--history", database, "--last", "ages")
    assert result.exit_code == 2
    assert result.stderr.startswith("penstock: --last is 'ages'; write a duration")


def test_a_terminal_gets_a_table(database: str) -> None:
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "penstock", "history", "--history", database, "--changes"]
    shown = subprocess.run(
        command, stdout=theirs, stderr=subprocess.PIPE, timeout=60, check=False,
        env=os.environ | {"COLUMNS": "150", "TERM": "dumb"},
    )  # fmt: skip
    os.close(theirs)
    with os.fdopen(ours, "rb", buffering=0) as screen:
        text = screen.read(65536).decode()
    assert (shown.returncode, shown.stderr) == (0, b"")
    assert "what and why" in text
    assert "│ did     │ executors -> 2: done in 0.5 s, 1 new" in text
    assert "\x1b[31m" not in text  # an escape that a failure's message tried to send


def test_old_periods_can_be_forgotten(database: str) -> None:
    refused = invoke("prune", "--history", database)
    assert refused.exit_code != 0
    with HistoryStore(database) as store:
        assert len(store.runs()) == 2
    gone = invoke("prune", "--history", database, "--age", "1d", "--json")
    assert gone.exit_code == 0
    assert json.loads(gone.stdout) == {"periods": 2, "runs": 2}
    with HistoryStore(database) as store:
        assert store.runs() == {}
