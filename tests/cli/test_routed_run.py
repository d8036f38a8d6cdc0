"""A routed topology as a user would run it."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pyarrow.dataset as ds
import pytest

PENSTOCK = Path(sys.executable).with_name("penstock")
EXAMPLE = Path(__file__).parents[2] / "examples/lookups.py"

pytestmark = pytest.mark.spark


def penstock(*words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    shutil.copy(EXAMPLE, cwd)
    return subprocess.run(
        [PENSTOCK, "run", "lookups.py:lookups", *words],
        cwd=cwd, capture_output=True, text=True, timeout=240, check=False,
    )  # fmt: skip


def test_dabs_is_autoscale_plus_with_osg(tmp_path: Path) -> None:
    done = penstock(
        "--policy", "autoscale_plus", "--once", "--checkpoint", "checkpoint", "--json", cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["results"] == 800
    rows = ds.dataset([str(file) for file in tmp_path.glob("out/batch=*/*.parquet")]).to_table()
    assert sorted(rows["row"].to_pylist()) == list(range(800))
    reports = list((tmp_path / "checkpoint/penstock/routes/requests/reports").glob("*-costs-*"))
    assert reports  # the operator told what values cost


@pytest.mark.long
def test_explain_shows_routes(tmp_path: Path) -> None:
    done = penstock("--explain", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "route of requests: osg by key over 8 tasks, a new table every 2 s" in done.stdout
