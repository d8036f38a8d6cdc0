"""Without matplotlib everything works but figures, and what is missing is said in one sentence."""

import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from penstock.cli import app
from penstock.cli.plotting import MISSING
from penstock.cli.report import write_report
from penstock.control.summary import RunTally

SCENARIO = """
[scenario]
name = "short"
duration = "1m"
max_latency = "5s"

[batch]
fixed = "250ms"

[[source]]
name = "reports"
rate = { profile = "steps", steps = [["30s", 20], ["30s", 40]] }

[[operator]]
name = "lookup"
from = ["reports"]
service = { mean = "20ms" }
"""


@pytest.fixture(autouse=True)
def _without(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in [name for name in sys.modules if name.split(".")[0] == "matplotlib"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(
    "words",
    [
        ("plan-graph", "road.py:road", "--out", "road.svg"),
        ("advise", "fusion", "load.json", "--plot", "plan.svg"),
    ],
)
def test_a_picture_that_is_asked_for_is_refused_first(words: tuple[str, ...]) -> None:
    Path("load.json").write_text("{}", encoding="utf-8")
    result = CliRunner().invoke(app, list(words))
    assert (result.exit_code, result.stderr) == (1, f"penstock: {MISSING}\n")
    assert MISSING.endswith("pip install 'penstock[plot]'.")


def test_a_plan_is_advised_without_its_figure() -> None:
    Path("short.toml").write_text(SCENARIO, encoding="utf-8")
    runner = CliRunner()
    assert runner.invoke(app, ["simulate", "short.toml", "--history", "h.sqlite"]).exit_code == 0
    result = runner.invoke(app, ["plan", "--history", "h.sqlite", "--policy", "ds2"])
    assert (result.exit_code, result.stderr) == (0, f"penstock: {MISSING}\n")
    assert "advice: " in result.stdout
    assert "figure" not in result.stdout
    assert not Path("figures").exists()


def test_a_report_says_why_it_has_no_plots() -> None:
    write_report(Path("report.html"), "a run", [], RunTally().summary(5.0, 1, 2))
    page = Path("report.html").read_text(encoding="utf-8")
    assert "penstock[plot]" in page
    assert "<svg" not in page
    assert "<h2>Decisions</h2>" in page
