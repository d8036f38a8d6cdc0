"""`penstock arena`: policies over scenarios, from their files to a table, JSON and a figure."""

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from penstock.cli import app

SCENARIO = """
[scenario]
name = "{name}"
max_latency = "5s"
share = 0.95

[cluster]
max_executors = 3
startup = "5s"

[[source]]
name = "reports"
rate = {{ profile = "csv", file = "load.csv", peak_processors = 2, step_s = "20s" }}

[[operator]]
name = "lookup"
from = ["reports"]
service = {{ mean = "40ms" }}
"""
KEYS = {
    "scenario", "policy", "in_time_share", "latency_p99_s", "executor_seconds",
    "clairvoyant_executor_seconds", "reconfigurations",
}  # fmt: skip


@pytest.fixture
def scenario(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "loads").mkdir()
    lines = [f"2013-01-0{day},{value}" for day, value in ((1, 2), (2, 9), (3, 3))]
    (tmp_path / "loads" / "load.csv").write_text("\n".join(["day,flights", *lines, ""]))
    path = tmp_path / "loads" / "short.toml"
    path.write_text(SCENARIO.format(name="short"))
    return str(path)


def invoke(*arguments: str) -> Any:
    return CliRunner().invoke(app, ["arena", "--processes", "1", *arguments])


def entries(*arguments: str) -> list[dict[str, Any]]:
    result = invoke(*arguments, "--json")
    assert (result.exit_code, result.stderr) == (0, "")
    answer: list[dict[str, Any]] = json.loads(result.stdout)
    return answer


def test_it_lists_each_policy_with_what_the_clairvoyant_needs(scenario: str) -> None:
    found = entries(scenario, "--policies", "ds2,incremental")
    assert [entry["policy"] for entry in found] == ["ds2", "incremental"]
    for entry in found:
        assert entry.keys() >= KEYS
        assert "seed" not in entry
        assert entry["scenario"] == "short"
        assert 60.0 <= entry["clairvoyant_executor_seconds"] <= 180.0
        assert 0 < entry["in_time_share"] <= 1


def test_each_seed_is_an_entry_and_the_first_is_the_scenarios_own(scenario: str) -> None:
    found = entries(scenario, "--policies", "ds2", "--seeds", "2")
    assert [entry["seed"] for entry in found] == [1, 2]
    assert found[0]["in_time_share"] == entries(scenario, "--policies", "ds2")[0]["in_time_share"]
    assert found[0]["in_time_share"] != found[1]["in_time_share"]


def test_all_are_all_but_the_one_that_does_nothing(scenario: str) -> None:
    found = {entry["policy"] for entry in entries(scenario)}
    assert {"drs", "ds2", "incremental"} <= found
    assert "static" not in found


def test_the_table_has_the_references_and_who_is_dominated(scenario: str) -> None:
    result = invoke(scenario, "--policies", "ds2,static")
    assert (result.exit_code, result.stderr) == (0, "")
    assert "short: 0.95 of the results within 5 s; at least " in result.stdout
    for word in ("clairvoyant", "(minimum)", "(maximum)", "ds2", "static ", "dominated by"):
        assert word in result.stdout


def test_two_processes_give_the_same_answer(scenario: str) -> None:
    alone = entries(scenario, "--policies", "ds2")
    assert entries(scenario, "--policies", "ds2", "--processes", "2") == alone


def test_options_of_the_run_hold_for_every_policy(scenario: str) -> None:
    held = entries(scenario, "--policies", "drs", "--aim", "0.1")
    free = entries(scenario, "--policies", "drs")
    assert held[0]["executor_seconds"] > free[0]["executor_seconds"]


def test_a_share_of_the_options_holds_for_the_references_too(scenario: str) -> None:
    (strict,), (lax,) = (
        entries(scenario, "--policies", "incremental", "--share", share)
        for share in ("0.99", "0.6")
    )
    assert strict["clairvoyant_in_time_share"] >= 0.99
    assert lax["clairvoyant_executor_seconds"] < strict["clairvoyant_executor_seconds"]


def test_a_figure_is_drawn(scenario: str, tmp_path: Path) -> None:
    assert invoke(scenario, "--policies", "ds2", "--plot", "arena.svg").exit_code == 0
    drawn = (tmp_path / "arena.svg").read_text()
    assert drawn.startswith("<?xml")


def test_what_is_wrong_is_said_in_one_line(scenario: str, tmp_path: Path) -> None:
    twin = tmp_path / "loads" / "twin.toml"
    twin.write_text(SCENARIO.format(name="short"))
    apart = tmp_path / "loads" / "apart.toml"
    text = SCENARIO.format(name="apart")
    apart.write_text(text.replace('max_latency = "5s"', 'max_latency = "5s"\nsharing = "space"'))
    broken = tmp_path / "loads" / "broken.toml"
    broken.write_text(SCENARIO.format(name="broken").replace("load.csv", "nowhere.csv"))
    for arguments, word in (
        ([scenario, "--policies", "clever"], "--policies has 'clever'"),
        ([scenario, "--policies", ""], "--policies has ''"),
        ([scenario, str(twin)], "both named 'short'"),
        ([str(apart)], "sharing = 'space'"),
        ([str(broken)], "nowhere.csv"),
        ([scenario, "--plot", "arena.doc"], "--plot is 'arena.doc'"),
        ([scenario, "--plot", "nowhere/arena.png"], "no folder 'nowhere'"),
        ([scenario, "--seeds", "0"], "--seeds"),
        ([scenario, "--processes", "9"], "--processes"),
    ):
        result = invoke(*arguments)
        assert (result.exit_code, word in result.stderr) == (2, True), (arguments, result.stderr)
    assert invoke().exit_code == 2
