"""`penstock plan`: a history in, a table and a figure out, or a refusal with its reason."""

import json
import shutil
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from cli.short_scenario import SCENARIO, STEADY, write_scenario
from penstock.cli import app, plan_figure

PEAK = '{ profile = "steps", steps = [["40s", 20], ["40s", 80], ["40s", 20]] }'
FEW = ("--policy", "ds2", "--executors-max", "2")  # candidates, where it is not about them
WITH_A_PEAK = SCENARIO.replace(STEADY, PEAK).replace("40ms", "20ms")


def penstock(*words: str) -> Any:
    return CliRunner().invoke(app, list(words))


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The history of one simulated run."""
    folder = tmp_path_factory.mktemp("recorded")
    write_scenario(folder, WITH_A_PEAK, "2m")
    simulated = ("simulate", str(folder / "short.toml"), "--policy", "incremental")
    assert penstock(*simulated, "--history", str(folder / "h.sqlite")).exit_code == 0
    return folder / "h.sqlite"


@pytest.fixture
def history(recorded: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A copy of it, where the test is."""
    monkeypatch.chdir(tmp_path)
    shutil.copy(recorded, "h.sqlite")
    return "h.sqlite"


@pytest.fixture(autouse=True)
def _undrawn(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Drawing takes longer than all the rest, and is looked at once."""
    if "and_a_figure" not in request.node.name:
        monkeypatch.setattr(plan_figure, "save", lambda *_: [])


def test_a_schedule_is_held_against_the_executors_that_are_planned_with(history: str) -> None:
    words = ("plan", "--history", history, "--policy", "ds2", "--schedule", "min 6")
    assert penstock(*words).stderr == (
        "penstock: schedule asks for at least 6 executors; executors-max is 4. "
        "See penstock docs options.\n"
    )
    assert penstock(*words, "--executors-min", "6", "--executors-max", "6").exit_code == 0


def test_a_run_that_is_too_short_says_how_long_it_must_be_and_which_one_is(history: str) -> None:
    write_scenario(Path(), WITH_A_PEAK, "25s")
    assert (
        penstock(
            "simulate", "short.toml", "--policy", "incremental", "--history", history
        ).exit_code
        == 0
    )
    result = penstock("plan", "--history", history)
    assert result.exit_code == 2
    assert "a replay needs at least 6: record at least " in result.stderr
    assert "record more often (penstock run --period 1s)" in result.stderr
    assert result.stderr.endswith("Run 1 of this history is long enough: --run 1.\n")
    assert penstock("plan", "--history", history, "--run", "1", *FEW).exit_code == 0


def test_a_plan_is_a_table_with_its_error_and_advice_and_a_figure(history: str) -> None:
    result = penstock("plan", "--history", history)
    assert (result.exit_code, result.stderr) == (0, "")
    first, *_, advice, figure = result.stdout.splitlines()
    assert first.startswith("run 1 of short: load x1, bound 5 s; replayed as it was")
    assert first.count("(error ") == 2
    for name in ("static 1", "static 4", "incremental", "drs", "ds2", "spark-dra"):
        assert f"{name} " in result.stdout
    assert advice.startswith("advice: ")
    assert figure == "figure: figures/plan.png"
    assert Path("figures/plan.png").read_bytes().startswith(b"\x89PNG")
    assert "<svg" in Path("figures/plan.svg").read_text(encoding="utf-8")


def test_json_holds_the_candidates_under_another_load_and_bound(history: str) -> None:
    words = ("--rate", "x2", "--max-latency", "2s", "--policy", "ds2", "--executors-max", "6")
    answer = json.loads(penstock("plan", "--history", history, *words, "--json").stdout)
    assert (answer["rate"], answer["max_latency_s"]) == (2.0, 2.0)
    assert [c["name"] for c in answer["candidates"]] == [
        *(f"static {size}" for size in range(1, 7)), "ds2",
    ]  # fmt: skip
    assert answer["fidelity"]["mean_error"] < 0.3
    one, *_, six = answer["candidates"][:6]
    assert one["executor_seconds"] * 6 == six["executor_seconds"]
    assert one["in_time_share"] < six["in_time_share"]


def test_a_run_the_simulator_does_not_reproduce_gets_no_advice(history: str) -> None:
    database = sqlite3.connect(history)
    database.execute("UPDATE penstock_observations SET latency_mean_s = 4 * latency_mean_s")
    database.commit()
    database.close()
    result = penstock("plan", "--history", history)
    assert (result.exit_code, result.stdout) == (3, "")
    assert (
        "no advice: replayed as it was without its first 10 s, run 1 of short has" in result.stderr
    )
    assert "what helps is a longer run" in result.stderr
    assert "--tolerance allows 30%" in result.stderr
    assert len(result.stderr.splitlines()) == 1
    assert penstock("plan", "--history", history, "--tolerance", "0.9", *FEW).exit_code == 0


def test_advice_keeps_the_share_that_is_asked_for(history: str) -> None:
    result = penstock("plan", "--history", history, "--policy", "ds2", "--share", "0.5")
    assert result.exit_code == 0
    assert "the cheapest that keeps 50% of results within" in result.stdout


def test_a_load_that_nothing_can_serve_is_infeasible(history: str) -> None:
    result = penstock("plan", "--history", history, "--rate", "x20", "--policy", "ds2")
    assert result.exit_code == 3
    assert "nothing within 4 executors keeps 99% of results within 5 s" in result.stderr
    assert "static 4" in result.stdout  # the best that can be had is shown all the same


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--rate", "2z"), "--rate is '2z'; give a factor above 0"),
        (("--rate", "x0"), "--rate is 'x0'; give a factor above 0"),
        (("--rate", "xnan"), "--rate is 'xnan'; give a factor above 0"),
        (("--policy", "drs,best"), "--policy names 'best'; allowed: "),
        (("--run", "7"), "--run is 7; "),
        (("--max-latency", "soon"), "--max-latency"),
        (("--executors-min", "9", "--executors-max", "2"), "--executors-min is 9; it must be at"),
        (("--history", "none.sqlite"), "there is no history at none.sqlite"),
    ],
)
def test_bad_input_is_one_sentence(history: str, words: tuple[str, ...], sentence: str) -> None:
    result = penstock("plan", "--history", history, *words)
    assert result.exit_code == 2
    assert sentence in result.stderr
    assert len(result.stderr.splitlines()) == 1


def test_the_beginning_can_be_left_out_and_what_was_is_said(history: str) -> None:
    words = (*FEW, "--json")
    by_itself = json.loads(penstock("plan", "--history", history, *words).stdout)
    assert by_itself["skipped_s"] > 0
    whole = json.loads(penstock("plan", "--history", history, "--skip", "0s", *words).stdout)
    assert whole["skipped_s"] == 0
    later = json.loads(penstock("plan", "--history", history, "--skip", "40s", *words).stdout)
    assert later["skipped_s"] == pytest.approx(40.0)
    said = penstock("plan", "--history", history, "--skip", "40s", *FEW)
    assert "replayed as it was without its first 40 s, it has" in said.stdout
    refused = penstock("plan", "--history", history, "--skip", "soon")
    assert refused.exit_code == 2
    assert "--skip is 'soon'; write a duration" in refused.stderr


def test_a_refusal_says_what_would_be_trusted(history: str) -> None:
    database = sqlite3.connect(history)
    database.execute(
        "UPDATE penstock_observations SET latency_mean_s = 60 * latency_mean_s, "
        "latency_p95_s = 60 * latency_p95_s WHERE seq < 6"
    )
    database.commit()
    database.close()
    result = penstock("plan", "--history", history, "--skip", "0s")
    assert result.exit_code == 3
    assert "would bring it within that" in result.stderr
    skip = result.stderr.split("--skip ")[1].split()[0]
    assert penstock("plan", "--history", history, "--skip", skip, *FEW).exit_code == 0


def test_a_price_makes_each_candidate_a_range_of_cost(history: str) -> None:
    words = ("--policy", "incremental", "--price", "0.5", "--days", "10")
    answer = json.loads(penstock("plan", "--history", history, *words, "--json").stdout)
    cost = answer["cost"]
    assert (cost["price_per_executor_hour"], cost["days"]) == (0.5, 10.0)
    fixed = cost["bills"]["static 2"]
    assert fixed["low"] == fixed["high"] == pytest.approx(2 * 240 * 0.5)
    varies = cost["bills"]["incremental"]
    assert cost["bills"]["static 1"]["low"] < varies["low"] < varies["middle"] < varies["high"]
    assert varies["high"] < cost["bills"]["static 4"]["high"]
    assert varies["executor_hours"] * 0.5 == pytest.approx(varies["middle"], rel=0.1)
    said = penstock("plan", "--history", history, *words).stdout
    assert " for 10 days at 0.5 an executor-hour, if they are " in said
    refused = penstock("plan", "--history", history, "--days", "10")
    assert (refused.exit_code, "cost" in answer) == (2, True)
    assert refused.stderr == "penstock: --days is given without --price; give the price too.\n"
