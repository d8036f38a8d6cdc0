"""`penstock run` and the README's topology, as a user would type them."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pyarrow.dataset as ds
import pytest
from typer.testing import CliRunner

from penstock import Generator, steps
from penstock.cli.app import app
from penstock.fusion import reading
from penstock.fusion.reading import Unit

PENSTOCK = Path(sys.executable).with_name("penstock")
ROOT = Path(__file__).parents[2]


def penstock(*words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [PENSTOCK, *words], cwd=cwd, capture_output=True, text=True, timeout=240, check=False
    )


@pytest.fixture
def readme_topology(tmp_path: Path) -> Path:
    """The README's topology, cut out of the README."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    file = tmp_path / "speeds.py"
    file.write_text(code, encoding="utf-8")
    return file


ON_THE_PAGE, FOUR_TIMES_AS_FAST = "steps([(20, 200), (20, 800)])", "steps([(5, 800), (5, 3200)])"


def test_the_readme_topology_is_the_example(readme_topology: Path) -> None:
    assert readme_topology.read_text() == (ROOT / "examples/speeds.py").read_text()


def expected_speeds(checkpoint: Path) -> pd.DataFrame:
    """What the README's topology gives for the windows that the last watermark closes."""
    epoch_s = json.loads((checkpoint / "penstock/epoch.json").read_text())["epoch_s"]
    stream = Generator(steps([(5, 800), (5, 3200)]), keys=100, rows=20_000)
    rows = stream.batch(0, 20_000, epoch_s).to_pandas()
    rows = rows[rows["value"] > 0.1]
    closed = (rows["at"].max() - pd.Timedelta(seconds=1)).floor("1ms")
    rows["since"] = rows["at"].dt.floor("2s")
    rows = rows[rows["since"] + pd.Timedelta(seconds=2) <= closed]
    means = 130 * rows.groupby(["key", "since"])["value"].mean()
    return means.rename("speed").reset_index().rename(columns={"key": "vehicle"})


@pytest.mark.spark
def test_the_readme_topology_runs_as_printed_but_faster(readme_topology: Path) -> None:
    """Its rows come in ten seconds, not forty; `first_hour` has the page itself with --long."""
    directory = readme_topology.parent
    printed = readme_topology.read_text(encoding="utf-8")
    assert printed.count(ON_THE_PAGE) == 1
    readme_topology.write_text(printed.replace(ON_THE_PAGE, FOUR_TIMES_AS_FAST), encoding="utf-8")
    done = penstock("run", "speeds.py:road", "--json", "--checkpoint", "state", cwd=directory)
    assert done.returncode == 0, done.stderr
    summary = json.loads(done.stdout)
    assert summary["results"] == 20_000
    assert summary["max_latency_s"] == 5.0
    found = ds.dataset(str(directory / "out/speeds"), partitioning="hive").to_table().to_pandas()
    assert set(found.columns) == {"vehicle", "since", "speed", "batch"}
    expected = expected_speeds(directory / "state")
    merged = found.merge(expected, on=["vehicle", "since"], how="outer", suffixes=("", "_batch"))
    assert len(merged) == len(found) == len(expected)
    assert (merged["speed"] - merged["speed_batch"]).abs().max() < 1e-9

    shown = penstock("history", "--json", cwd=directory)
    assert shown.returncode == 0, shown.stderr
    assert json.loads(shown.stdout)


def test_a_run_that_is_refused_leaves_no_history_behind(
    readme_topology: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`penstock why` and the page would show an empty one instead of saying that there is none."""
    monkeypatch.chdir(readme_topology.parent)
    for words in (["--master", "embeded"], ["--checkpoint", "speeds.py/state"]):
        done = CliRunner().invoke(app, ["run", "speeds.py", *words])
        assert done.exit_code == 2
        assert list(Path().glob("*.sqlite*")) == []


@pytest.mark.spark
@pytest.mark.usefixtures("no_session")
def test_explain_shows_components_and_runs_nothing(
    readme_topology: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(readme_topology.parent)
    done = CliRunner().invoke(app, ["run", "speeds.py", "--explain"])
    assert done.exit_code == 0, done.stderr
    assert "component speeds by (key, window): speeds" in done.stdout
    assert "component reports: moving" in done.stdout
    assert not Path("out").exists()


TWICE = """
from penstock import *
t = Topology('twice', max_latency='60s')
t.source('rows', lambda spark: spark.readStream.schema('key INT').json('{folder}'))
for name in ('a', 'b'):
    t.add(name, 'SELECT key, count(*) AS n FROM rows GROUP BY key', 'rows')
    t.sink(name + '_out', name, Memory(), mode='update')
"""


@pytest.mark.spark
@pytest.mark.usefixtures("no_session")
def test_explain_shows_what_goes_on_with_a_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("twice.py").write_text(TWICE.format(folder=tmp_path / "rows"))
    Path("rows").mkdir()
    Path("rows/a.json").write_text('{"key": 1}\n')
    shared, again = "shared by an exchange: rows", "rows runs 2 times per batch"

    def run(*words: str) -> str:
        done = CliRunner().invoke(app, ["run", "twice.py:t", *words])
        assert done.exit_code == 0, done.stderr
        return done.stdout

    with pytest.MonkeyPatch.context() as free:
        for unit in ("WRITE", "FETCH"):
            free.setattr(reading, unit, Unit(0.0, 0.0, 0.0))
        free.setattr(reading, "STAGE_S", 0.0)
        run("--once", "--checkpoint", "begun")
    first = run("--explain", "--checkpoint", "new")
    assert again in first
    assert shared not in first
    assert not Path("new").exists()
    begun = run("--explain", "--checkpoint", "begun")
    assert shared in begun
    assert again not in begun


@pytest.mark.spark
@pytest.mark.usefixtures("no_session")
def test_a_topology_spark_refuses_is_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("bad.py").write_text(
        "from penstock import *\n"
        "t = Topology('bad', max_latency='5s')\n"
        "t.source('rows', Generator(constant(10.0)))\n"
        "t.add('speeds', 'SELECT speed FROM rows', 'rows')\n"
        "t.sink('out', 'speeds', Memory())\n"
    )
    done = CliRunner().invoke(app, ["run", "bad.py:t"])
    assert done.exit_code == 2
    (line,) = done.stderr.strip().splitlines()
    assert line.startswith("penstock: operator 'speeds': sql:")
    assert "Traceback" not in done.stdout + done.stderr


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ("other.py:", "'other.py:' names no topology; write FILE.py:NAME"),
        ("empty.py", "empty.py holds no topology; it needs one"),
        ("exits.py", "exits.py ends the program (sys.exit) as it is read"),
        ("two.py", "write FILE.py:NAME; it has road, rail"),
        ("missing.py:road", "missing.py is not a file"),
        ("empty.py:road", "empty.py holds no topology; it needs one"),
        (
            "broken.py:road",
            "broken.py failed: ZeroDivisionError: division by zero (broken.py, line 1)",
        ),
        ("other.py:rail", "has no topology named 'rail'; it has road"),
        ("notes.txt:road", "its name must end in .py"),
    ],
)
def test_files_that_hold_no_topology_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spec: str, words: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("empty.py").write_text("")
    Path("broken.py").write_text("1 / 0")
    Path("exits.py").write_text("import sys; sys.exit(3)")
    Path("other.py").write_text(
        "from penstock import Topology\nroad = Topology('r', max_latency=1)"
    )
    Path("two.py").write_text(
        "from penstock import Topology\n"
        "road, rail = Topology('r', max_latency=1), Topology('s', max_latency=1)"
    )
    Path("notes.txt").write_text("")
    answer = CliRunner().invoke(app, ["run", spec])
    assert answer.exit_code == 2
    assert words in answer.stderr
    assert len(answer.stderr.strip().splitlines()) == 1


def test_wrong_options_are_refused_before_spark_starts(tmp_path: Path) -> None:
    environment = {**os.environ, "PENSTOCK_PERIOD": "soon"}
    done = subprocess.run(
        [PENSTOCK, "run", "x.py:t"],
        cwd=tmp_path, capture_output=True, text=True, env=environment, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 2
    assert "PENSTOCK_PERIOD is 'soon'" in done.stderr


def test_the_demo_leaves_other_directories_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("years of work")
    answer = CliRunner().invoke(app, ["demo", "--out", str(tmp_path)])
    assert answer.exit_code == 2
    assert "was not made by an earlier demo" in answer.stderr
    assert (tmp_path / "thesis.tex").exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--processors", "a=1"], "--processors is given without --apart"),
        (["--apart", "--processors", "a"], "write COMPONENT=NUMBER"),
    ],
)
def test_processors_are_refused_where_they_mean_nothing(words: list[str], said: str) -> None:
    done = CliRunner().invoke(app, ["run", str(ROOT / "examples/speeds.py") + ":road", *words])
    assert done.exit_code != 0
    assert said in str(done.exception) + done.output
