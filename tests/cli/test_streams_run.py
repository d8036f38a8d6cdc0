"""`penstock run` on a directory of growing files, as a user would type it."""

import json
from pathlib import Path

import pyarrow.dataset as ds
import pytest
from typer.testing import CliRunner

from penstock.cli.app import app
from penstock.spark.sources.dead_letters import read_letters

EXAMPLE = Path(__file__).parents[2] / "examples/sensors.py"


def written_for(folder: Path) -> str:
    """The example with its places in a folder: a JVM that is shared was started elsewhere."""
    text = EXAMPLE.read_text(encoding="utf-8")
    for place in ('"in"', '"streams.toml"', '"out/hot"'):
        assert text.count(place) == 1
        text = text.replace(place, repr(str(folder / place.strip('"'))))
    return text


@pytest.mark.spark
@pytest.mark.usefixtures("no_session")
def test_a_directory_of_files_is_worked_off_and_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("sensors.py").write_text(written_for(tmp_path))
    Path("streams.toml").write_text('[streams."a.json"]\ngreatest_rate = 100\n')
    Path("in").mkdir()
    for name in ("a", "b", "c"):
        lines = [json.dumps({"seq": n, "celsius": float(n % 50)}) for n in range(300)]
        Path(f"in/{name}.json").write_text("\n".join([*lines, "oops", ""]))
    words = [
        "run",
        "sensors.py:sensors",
        "--once",
        "--json",
        "--checkpoint",
        str(tmp_path / "state"),
    ]
    done = CliRunner().invoke(app, [*words, "--master", "local[2]"])
    assert done.exit_code == 0, done.stderr
    rows = ds.dataset(list(map(str, Path("out/hot").glob("batch=*/*.parquet")))).to_table()
    assert sorted(zip(rows["sensor"].to_pylist(), rows["seq"].to_pylist(), strict=True)) == [
        (f"{name}.json", n) for name in "abc" for n in range(300) if n % 50 > 30
    ]
    letters = read_letters(Path("state/penstock/sources/readings/dead-letters"))
    assert letters["stream"].to_pylist() == ["a.json", "b.json", "c.json"]
    shown = CliRunner().invoke(app, ["history", "--show", "admissions", "--json"])
    assert shown.exit_code == 0, shown.stderr
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
