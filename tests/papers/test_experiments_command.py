"""`python -m experiments`: what is offered, what is printed, what is refused."""

import json
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from typer.testing import CliRunner

from experiments import command
from experiments.__main__ import COMMAND, app
from experiments.claim import Claim
from experiments.command import PAPERS
from penstock.cli.plotting import MISSING

HELD = Claim("X1", "water flows down", "it does, 5 of 5", True, "sim", numbers={"share": 1.0})
NOT_HELD = Claim("X2", "water flows up", "it does not", False, "pure", reason="gravity")


def invoke(*arguments: str) -> Any:
    return CliRunner().invoke(app, [COMMAND, *arguments], prog_name="python -m")


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Path, list[int], bool]]:
    calls: list[tuple[Path, list[int], bool]] = []

    def run(folder: Path, seeds: list[int], quick: bool) -> list[Claim]:
        calls.append((folder, seeds, quick))
        return [HELD, NOT_HELD]

    monkeypatch.setattr(command, "import_module", lambda name: SimpleNamespace(run=run))
    return calls


def test_help_says_what_is_typed() -> None:
    result = invoke("--help")
    assert result.exit_code == 0
    assert "Usage: python -m experiments [OPTIONS]" in result.stdout
    assert "Example: python -m experiments drs --seeds 5 --json" in result.stdout
    for paper in PAPERS:
        assert paper in result.stdout


@pytest.mark.usefixtures("asked")
def test_a_claim_that_does_not_hold_is_no_failure(tmp_path: Path) -> None:
    result = invoke("fusion", "--out", str(tmp_path))
    assert result.exit_code == 0
    for word in ("X1", "yes", "water flows up", "it does not", "gravity", "pure"):
        assert word in result.stdout
    assert "1 of 2 claims hold" in result.stderr
    assert "1 of 2" not in result.stdout


def test_json_is_one_object_per_claim(tmp_path: Path, asked: list[Any]) -> None:
    result = invoke(
        "fusion", "--json", "--quick", "--seeds", "2", "--out", str(tmp_path / "new" / "folder")
    )
    assert result.exit_code == 0
    held, not_held = json.loads(result.stdout)
    assert held == {**HELD.as_json(), "figures": []}
    assert (not_held["id"], not_held["holds"], not_held["reason"]) == ("X2", False, "gravity")
    assert asked == [(tmp_path / "new" / "folder", [1, 2], True)]


def test_experiments_on_spark_are_asked_for(tmp_path: Path, monkeypatch: Any) -> None:
    here = SimpleNamespace(run=None, run_on_spark=lambda folder, seeds, quick: [HELD])
    monkeypatch.setattr(command, "import_module", lambda name: here)
    result = invoke("fusion", "--where", "spark", "--json", "--out", str(tmp_path))
    assert [claim["id"] for claim in json.loads(result.stdout)] == ["X1"]


def test_one_claim_alone(tmp_path: Path, monkeypatch: Any) -> None:
    claims = [
        SimpleNamespace(__name__=f"experiments.water.claims.{name}", claim=lambda *_, c=made: c)
        for name, made in (("x1", HELD), ("x2", NOT_HELD))
    ]
    monkeypatch.setattr(command, "import_module", lambda name: SimpleNamespace(CLAIMS=claims))
    result = invoke("fusion", "--claim", "x2", "--json", "--out", str(tmp_path))
    assert [claim["id"] for claim in json.loads(result.stdout)] == ["X2"]
    unknown = invoke("fusion", "--claim", "X9")
    assert (unknown.exit_code, unknown.stderr) == (
        2, "penstock: --claim is 'X9'; allowed: X1, X2.\n"
    )  # fmt: skip
    none_there = invoke("fusion", "--claim", "X1", "--where", "spark")
    assert "fusion has no experiments there" in none_there.stderr


def test_wrong_input_is_refused_before_anything_runs(tmp_path: Path, asked: list[Any]) -> None:
    unknown = invoke("weather")
    assert unknown.exit_code == 2
    assert unknown.stderr == f"penstock: NAME is 'weather'; allowed: {', '.join(PAPERS)}.\n"
    taken = tmp_path / "file"
    taken.write_text("")
    blocked = invoke("fusion", "--out", str(taken))
    assert blocked.exit_code == 2
    assert blocked.stderr == f"penstock: --out is '{taken}': File exists; give a folder.\n"
    assert invoke("fusion", "--seeds", "0").exit_code == 2
    nowhere = invoke("fusion", "--where", "flink")
    assert nowhere.stderr == "penstock: --where is 'flink'; allowed: sim, spark.\n"
    not_there = invoke("fusion", "--where", "spark")
    assert not_there.exit_code == 2
    assert "fusion has no experiments there" in not_there.stderr
    assert asked == []


def test_without_matplotlib_nothing_is_run(
    tmp_path: Path, asked: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    result = invoke("drs", "--out", str(tmp_path))
    assert (result.exit_code, result.stderr) == (1, f"penstock: {MISSING}\n")
    assert asked == []
