"""A routed topology as a user would run it."""

import json
import shutil
from pathlib import Path

import pyarrow.dataset as ds
import pytest
from click.testing import Result
from typer.testing import CliRunner

from penstock.cli.app import app

EXAMPLE = Path(__file__).parents[2] / "examples/lookups.py"

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("no_session")]


@pytest.fixture(autouse=True)
def _beside_the_example(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copy(EXAMPLE, tmp_path)
    monkeypatch.chdir(tmp_path)


def run(*words: str) -> Result:
    return CliRunner().invoke(app, ["run", "lookups.py:lookups", *words])


@pytest.mark.long
def test_dabs_is_autoscale_plus_with_osg(tmp_path: Path) -> None:
    done = run("--policy", "autoscale_plus", "--once", "--checkpoint", "checkpoint", "--json")
    assert done.exit_code == 0, done.stderr
    assert json.loads(done.stdout)["results"] == 800
    rows = ds.dataset([str(file) for file in tmp_path.glob("out/batch=*/*.parquet")]).to_table()
    assert sorted(rows["row"].to_pylist()) == list(range(800))
    reports = list((tmp_path / "checkpoint/penstock/routes/requests/reports").glob("*-costs-*"))
    assert reports  # the operator told what values cost


def test_explain_shows_routes() -> None:
    done = run("--explain")
    assert done.exit_code == 0, done.stderr
    assert "route of requests: osg by key over 8 tasks, a new table every 2 s" in done.stdout
