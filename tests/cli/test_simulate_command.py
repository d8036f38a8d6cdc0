"""`penstock simulate`: a scenario from its file to its summary."""

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from cli.short_scenario import SCENARIO, write_scenario
from penstock.cli import app
from penstock.cli.settings import NOT_SIMULATED
from penstock.config import OPTIONS
from penstock.control.history.store import HistoryStore


@pytest.fixture
def scenario(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    return str(write_scenario(tmp_path))


def invoke(*arguments: str) -> Any:
    return CliRunner().invoke(app, ["simulate", *arguments])


def summary(*arguments: str) -> dict[str, Any]:
    result = invoke(*arguments, "--json")
    assert (result.exit_code, result.stderr) == (0, "")
    answer: dict[str, Any] = json.loads(result.stdout)
    return answer


def test_an_overloaded_scenario_scales_out_and_says_why(scenario: str) -> None:
    result = invoke(scenario)
    assert (result.exit_code, result.stderr) == (0, "")
    first, *_, last = result.stdout.splitlines()
    assert "executors 1 -> " in first
    assert "(promise): the load ahead needs them" in first
    assert last.startswith("short under promise, seed 3: ")


def test_the_summary_adds_up(scenario: str) -> None:
    answer = summary(scenario)
    assert answer["arrived_rows"] == answer["result_rows"] + answer["held_rows"]
    used = answer["executor_seconds"]
    assert answer["static_min_executor_seconds"] <= used <= answer["static_max_executor_seconds"]
    assert max(d["executors_wanted"] for d in answer["decisions"]) > 1


def test_the_seed_decides_and_can_be_given(scenario: str) -> None:
    assert summary(scenario) == summary(scenario, "--seed", "3")
    assert summary(scenario, "--seed", "4")["arrived_rows"] != summary(scenario)["arrived_rows"]


def test_the_policy_can_be_given_and_is_checked(scenario: str) -> None:
    still = summary(scenario, "--policy", "static")
    assert {d["executors_wanted"] for d in still["decisions"]} == {1}
    result = invoke(scenario, "--policy", "clever")
    assert result.exit_code == 2
    assert result.stderr.startswith("penstock: --policy is 'clever'; allowed: ")


def test_a_run_can_be_kept_in_a_history(scenario: str, tmp_path: Path) -> None:
    answer = summary(scenario, "--history", str(tmp_path / "h.sqlite"))
    with HistoryStore(str(tmp_path / "h.sqlite"), create=False) as store:
        run = store.latest_run()
        assert len(store.read_decisions(run)) == len(answer["decisions"])
        assert store.runs()[run].ended_at_s == 90.0


def test_options_come_from_the_file_the_environment_and_the_command_line(
    scenario: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "penstock.toml").write_text('[penstock]\npolicy = "static"', encoding="utf-8")
    assert summary(scenario)["policy"] == "static"
    monkeypatch.setenv("PENSTOCK_POLICY", "incremental")
    assert summary(scenario)["policy"] == "incremental"
    assert summary(scenario, "--policy", "static")["policy"] == "static"
    other = tmp_path / "other.toml"
    other.write_text("[penstock]\nstep-out = 0", encoding="utf-8")
    refused = invoke(scenario, "--config", str(other))
    assert refused.stderr == (
        f"penstock: step-out in {other} is 0; allowed: 1 to 10000, or off. "
        "See penstock docs options.\n"
    )


def test_a_dry_run_decides_and_does_nothing(scenario: str) -> None:
    answer = summary(scenario, "--dry-run")
    assert any(d["executors_wanted"] > 1 for d in answer["decisions"])
    assert not any(d["done"] for d in answer["decisions"])
    assert answer["executor_seconds"] == answer["static_min_executor_seconds"]


def test_its_help_lists_every_option_but_those_the_scenario_decides() -> None:
    help_text = CliRunner().invoke(app, ["simulate", "--help"], env={"COLUMNS": "200"}).stdout
    mine = {*NOT_SIMULATED} - {"history"}
    mine.add("policy-options")  # each is given by itself, as --policy-option
    for option in OPTIONS:
        assert (f"--{option.name} " in help_text) == (option.name not in mine)
    assert "--policy-option " in help_text


@pytest.mark.parametrize("content", [None, b"", b"\xff\xfe", b"[scenario", b"[scenario]\nname = 3"])
def test_a_bad_scenario_is_refused_in_one_line(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "bad.toml"
    if content is not None:
        path.write_bytes(content)
    result = invoke(str(path))
    assert result.exit_code == 2
    assert result.stderr.startswith("penstock: ")
    assert result.stderr.count("\n") == 1


def test_shadows_are_kept_in_the_history_and_shown_there(scenario: str, tmp_path: Path) -> None:
    where = str(tmp_path / "h.sqlite")
    answer = invoke(scenario, "--shadow", "drs,ds2", "--history", where)
    assert (answer.exit_code, answer.stderr) == (0, "")
    shown = CliRunner().invoke(app, ["history", "--history", where, "--show", "shadows"])
    words = [line.split("  ")[1:] for line in shown.stdout.splitlines()]
    assert {kind for kind, _ in words} == {"would"}
    assert any("(drs)" in what for _, what in words)
    assert any("(ds2)" in what for _, what in words)


def test_shadows_without_a_history_are_refused(scenario: str) -> None:
    result = invoke(scenario, "--shadow", "drs")
    assert result.exit_code == 2
    assert "--shadow needs --history" in result.stderr


@pytest.mark.parametrize(
    ("given", "replaced", "sentence"),
    [
        (["--share", "1"], "", "penstock: --share is '1'; allowed: 0.5 to 0.9999."),
        ([], 'max_latency = "100ms"',
         "scenario.max_latency is 0.1 s, but a batch without any row takes 0.25 s (batch) and rows "
         "wait for the one before it: at most 0% of the results can be in time, and share is 0.99; "
         "give at least 0.498 s."),
        ([], 'max_latency = "300ms"', "at most 30% of the results can be in time"),
        (["--share", "0.5"], 'max_latency = "300ms"', "share is 0.5; give at least 0.375 s."),
        (["--schedule", "mon min 3; mon 08:00-12:00 max 2"], "",
         "--schedule asks for at least 3 and at most 2 executors at the same time, on mon 08:00."),
    ],
)  # fmt: skip
def test_what_cannot_be_promised_is_refused_in_one_sentence(
    scenario: str, given: list[str], replaced: str, sentence: str
) -> None:
    if replaced:
        text = SCENARIO.replace('max_latency = "5s"', replaced)
        Path(scenario).write_text(text, encoding="utf-8")
    result = invoke(scenario, *given)
    assert result.exit_code == 2
    assert result.stdout == ""
    assert sentence in result.stderr
    assert len(result.stderr.strip().splitlines()) == 1


RUSH = """
[scenario]
name = "rush"
duration = "50m"
max_latency = "5s"
period = "30s"
step = "5s"
seed = 3

[cluster]
max_executors = 8
startup = "30s"

[batch]
fixed = "250ms"

[[source]]
name = "reports"
rate = { profile = "steps", steps = [["30m", 5], ["20m", 60]] }

[[operator]]
name = "lookup"
from = ["reports"]
service = { mean = "40ms" }
"""


def test_what_earlier_runs_saw_at_this_time_is_foreseen(tmp_path: Path) -> None:
    path, history = tmp_path / "rush.toml", tmp_path / "h.sqlite"
    path.write_text(RUSH, encoding="utf-8")
    asked = (str(path), "--history", str(history), "--json")
    first, second = (json.loads(invoke(*asked).stdout) for _ in range(2))
    assert second["in_time_share"] > first["in_time_share"]
    with HistoryStore(str(history), create=False) as store:
        lines = {
            run: str([d.decision.reasons for d in store.read_decisions(run)]) for run in (1, 2)
        }
    assert "by the calendar" not in lines[1]
    assert "by the calendar" in lines[2]
