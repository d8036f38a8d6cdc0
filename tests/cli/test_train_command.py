"""`penstock train`: what simulated runs teach, and that runs begin with it."""

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from cli.short_scenario import SCENARIO, write_scenario
from penstock.cli import app
from penstock.control.history.store import HistoryStore
from penstock.control.records import TRAINING
from penstock.sim.scenario_file import load_scenario
from penstock.sim.training import at_size, sizes_of


@pytest.fixture
def scenario(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return write_scenario(tmp_path, duration="60s")


def invoke(*arguments: str) -> Any:
    result = CliRunner().invoke(app, arguments)
    assert (result.exit_code, result.stderr) == (0, "")
    return json.loads(result.stdout)


def test_what_was_trained_is_what_the_next_run_does(scenario: Path) -> None:
    """A load of 1.6 needs two executors, and one falls behind."""
    (answer,) = invoke("train", str(scenario), "--history", "h.db", "--json")
    assert [size["processors"] for size in answer["sizes"]] == [1, 2, 3, 4]
    assert answer["sizes"][0]["in_time_share"] < 0.5 < answer["sizes"][1]["in_time_share"]
    assert {row["processors"] for row in answer["learnt"]} == {2}
    run = ("simulate", str(scenario), "--policy", "rlearn", "--json", "--history")
    changed = [d for d in invoke(*run, "h.db")["decisions"] if d["done"]]
    assert changed[0]["executors_wanted"] == 2
    assert "learnt for this load" in changed[0]["reasons"][0]
    assert not [d for d in invoke(*run, "other.db")["decisions"] if d["done"]]


def test_training_counts_however_many_runs_follow_and_teaches_no_calendar(scenario: Path) -> None:
    invoke("train", str(scenario), "--for", "road", "--history", "h.db", "--json")
    with HistoryStore("h.db") as store:
        runs = store.runs().values()
        assert {(run.topology, run.policy) for run in runs} == {("road", TRAINING)}
        assert not len(store.read_rates("road"))


def test_operators_with_processors_of_their_own_are_trained_degree_by_degree(
    scenario: Path,
) -> None:
    text = SCENARIO.replace('"5s"', '"5s"\nsharing = "space"').replace("rs = 4", "rs = 40")
    text = text.replace('[batch]\nfixed = "250ms"', "")
    scenario.write_text(text, encoding="utf-8")
    wanted = load_scenario(scenario)
    sizes = sizes_of(wanted)
    assert sizes[0] == 1
    assert sizes[-1] == 40
    assert len(sizes) == 12
    fixed = at_size(wanted, 7)
    assert fixed.operators[0].processors == 7
    assert fixed.cluster.executors == fixed.cluster.max_executors == 7
    assert fixed.seed != wanted.seed
