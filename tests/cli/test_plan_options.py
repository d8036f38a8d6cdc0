"""`--plan` and `plan-graph`: what is wrong is said before Spark is started."""

import json
from pathlib import Path

import pytest
from click.testing import Result
from typer.testing import CliRunner

from penstock.cli.app import app
from penstock.cli.drawing import draw_components

ROAD = f"{Path(__file__).parents[2] / 'examples/linear_road.py'}:road"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (None, "which cannot be read"),
        ("{", "is not JSON"),
        ('{"plan": 1}', "there is neither 'queries'"),
        ('{"components": [{"operators": ["speeds"]}]}', "key is 'None'; give a list"),
    ],
)
def test_a_plan_that_cannot_be_read_ends_with_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str | None, words: str
) -> None:
    monkeypatch.chdir(tmp_path)
    if text is not None:
        Path("plan.json").write_text(text, encoding="utf-8")
    done = CliRunner().invoke(app, ["run", ROAD, "--plan", "plan.json"])
    assert done.exit_code == 2
    assert words in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


def test_a_picture_needs_an_ending_that_can_be_drawn() -> None:
    done = CliRunner().invoke(app, ["plan-graph", ROAD, "--out", "plan.txt"])
    assert done.exit_code == 2
    assert "--out is 'plan.txt'" in done.stderr


FUSION = {
    "algorithm": "mwsc",
    "operators": [{"name": "speed", "key": ["vid", "seg"]}, {"name": "toll", "key": ["seg"]}],
    "streams": [
        {"from": None, "to": "speed", "load": 300},
        {"from": "speed", "to": "toll", "load": [[200, 200]]},
    ],
}


def advise(tmp_path: Path, *words: str, kind: str = "fusion") -> Result:
    file = tmp_path / "graph.json"
    file.write_text(json.dumps(FUSION), encoding="utf-8")
    return CliRunner().invoke(app, ["advise", kind, str(file), *words])


def test_advice_on_fusion_is_drawn(tmp_path: Path) -> None:
    done = advise(tmp_path, "--plot", str(tmp_path / "graph.svg"))
    assert done.exit_code == 0, done.stderr
    assert json.loads(done.stdout)["components"][0]["operators"] == ["speed", "toll"]
    assert (tmp_path / "graph.svg").stat().st_size > 2_000


def test_only_fusion_can_be_drawn_and_only_where_there_is_a_place(tmp_path: Path) -> None:
    for words, kind, said in (
        (["--plot", "graph.txt"], "fusion", "--plot is 'graph.txt'; its ending must be"),
        (["--plot", str(tmp_path / "no/graph.svg")], "fusion", "there is no such directory"),
        (["--plot", "graph.svg"], "scaling", "only the answer of fusion is a graph"),
    ):
        done = advise(tmp_path, *words, kind=kind)
        assert done.exit_code == 2
        assert said in done.stderr
        assert len(done.stderr.strip().splitlines()) == 1


def test_components_are_drawn(tmp_path: Path) -> None:
    edges = [("reports", "speeds"), ("speeds", "tolls"), ("tolls", "out")]
    parts = {"reports": ["reports"], "speeds by (segment)": ["speeds", "tolls"]}
    for ending in ("svg", "png"):
        file = tmp_path / f"plan.{ending}"
        draw_components("road", edges, parts, file)
        assert file.stat().st_size > 2_000
