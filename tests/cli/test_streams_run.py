"""`penstock run` on a directory of growing files, as a user would type it."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pyarrow.dataset as ds
import pytest
from typer.testing import CliRunner

from penstock.cli.app import app
from penstock.spark.sources.dead_letters import read_letters

PENSTOCK = Path(sys.executable).with_name("penstock")
EXAMPLE = Path(__file__).parents[2] / "examples/sensors.py"


def penstock(*words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """A process of its own: its files are named from where it is started."""
    return subprocess.run(
        [PENSTOCK, *words], cwd=cwd, capture_output=True, text=True, timeout=240, check=False
    )


@pytest.mark.spark
def test_a_directory_of_files_is_worked_off_and_told(tmp_path: Path) -> None:
    shutil.copy(EXAMPLE, tmp_path / "sensors.py")
    (tmp_path / "streams.toml").write_text('[streams."a.json"]\ngreatest_rate = 100\n')
    (tmp_path / "in").mkdir()
    for name in ("a", "b", "c"):
        lines = [json.dumps({"seq": n, "celsius": float(n % 50)}) for n in range(300)]
        (tmp_path / f"in/{name}.json").write_text("\n".join([*lines, "oops", ""]))
    words = ("run", "sensors.py:sensors", "--once", "--json", "--checkpoint", "state")
    words += ("--master", "local[2]")
    done = penstock(*words, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    rows = ds.dataset(list(map(str, (tmp_path / "out/hot").glob("batch=*/*.parquet")))).to_table()
    assert sorted(zip(rows["sensor"].to_pylist(), rows["seq"].to_pylist(), strict=True)) == [
        (f"{name}.json", n) for name in "abc" for n in range(300) if n % 50 > 30
    ]
    letters = read_letters(tmp_path / "state/penstock/sources/readings/dead-letters")
    assert letters["stream"].to_pylist() == ["a.json", "b.json", "c.json"]
    shown = penstock("history", "--show", "admissions", "--json", cwd=tmp_path)
    assert shown.returncode == 0, shown.stderr
    (first, *_) = json.loads(shown.stdout)["admissions"]
    assert (first["source"], first["streams"], first["lanes_after"]) == ("readings", 3, 1)
    assert "new streams admitted: 3" in first["reasons"]


def test_a_source_without_columns_is_refused_in_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    text = EXAMPLE.read_text().replace('schema="seq BIGINT, celsius DOUBLE",', "")
    (tmp_path / "sensors.py").write_text(text)
    done = CliRunner().invoke(app, ["run", "sensors.py:sensors", "--once"])
    assert done.exit_code == 2
    assert "Streams(schema) is not given" in done.stderr
    assert "Traceback" not in done.stderr
