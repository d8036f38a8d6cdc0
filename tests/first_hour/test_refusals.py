"""Mistakes of a first hour that need no Spark to be seen: one line each, with what to do."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from first_hour.newcomer import Newcomer
from penstock.cli.app import app

ROAD = """
from penstock import Files, Generator, Streams, Topology, constant

road = Topology("road", max_latency="5s")
road.source("reports", Generator(constant(50.0), rows=500))
road.add("kept", "SELECT * FROM reports", "reports")
road.sink("out", "kept", Files("out"))

cabs = Topology("cabs", max_latency="5s")
cabs.source("trips", Streams(files="trips", schema="cab STRING"))
cabs.add("kept", "SELECT * FROM trips", "trips")
cabs.sink("out", "kept", Files("cabs"))

tolls = Topology("tolls", max_latency="5s")
tolls.source("cents", Streams(redis="redis://127.0.0.1:1/0", schema="cents BIGINT"))
tolls.add("kept", "SELECT * FROM cents", "cents")
tolls.sink("out", "kept", Files("tolls"))
"""


@pytest.fixture
def newcomer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Newcomer:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "out" / "batch=0").mkdir(parents=True)
    made = Newcomer(tmp_path)
    made.writes("road.py", ROAD)
    made.writes("typed.py", "from pyspark.sql import functions as F\nf = F.udf(abs, 'double')\n")
    return made


@pytest.mark.parametrize(
    ("line", "code", "words"),
    [
        ("run road.py:road --master embeded", 2, "did you mean embedded?"),
        ("run road.py:road --master spark://127.0.0.1:1", 1, "cannot be reached"),
        ("run road.py:road", 2, "batch=0 exists already and this run starts from scratch"),
        ("run road.py:road --checkpoint road.py", 2, "road.py is a file"),
        ("run road.py:cabs --strict", 2, "the folder trips does not exist"),
        ("run road.py:tolls --strict", 2, "Redis at redis://127.0.0.1:1/0 cannot be reached"),
    ],
)
def test_a_mistake_is_refused_in_one_line_before_spark_starts(
    newcomer: Newcomer, line: str, code: int, words: str
) -> None:
    done = CliRunner().invoke(app, line.split())
    assert done.exit_code == code
    assert words in done.stderr
    assert done.stderr.count("\n") == 1
    assert not list(newcomer.folder.rglob("*.spark.log"))  # Spark was never started


def test_a_file_that_needs_spark_as_it_is_read_is_refused_in_one_line(newcomer: Newcomer) -> None:
    done = newcomer.types("penstock run typed.py")  # in a process that has no session of a test
    assert done.code == 2
    assert done.err.count("\n") == 1
    assert "typed.py, line 2: this needs Spark, which starts once" in done.err
    assert not list(newcomer.folder.rglob("*.spark.log"))
