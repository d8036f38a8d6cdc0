"""Many streams as a source of a topology, in a local session."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from penstock.errors import InvalidTopology
from penstock.model.sinks import Memory
from penstock.model.sources import Admission, Streams
from penstock.model.topology import Topology
from penstock.spark.running import Pace, RunningTopology
from penstock.spark.session import build_session
from penstock.workloads.generator import Generator
from penstock.workloads.profiles import constant

pytestmark = pytest.mark.spark

STREAMS, ROWS = 6, 300


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """A session as Penstock makes it."""
    log_file = tmp_path_factory.mktemp("spark") / "spark.log"
    made = build_session("streams", key_groups=2, log_file=log_file, quick_start=True)
    yield made
    made.stop()


def topology(lane_rows: int = 500) -> Topology:
    """Two sinks of unlike modes: two queries, so the source has two readers."""
    made = Topology("twice", max_latency="5s")
    streams = {f"g{n}": Generator(constant(1e6), rows=ROWS, seed=n) for n in range(STREAMS)}
    admission = Admission(lane_capacity=2 * ROWS, lane_rows=lane_rows, period="0.5s")
    made.source("many", Streams(generators=streams, stream_column="stream", admission=admission))
    made.add("counts", "SELECT stream, count(*) AS n FROM many GROUP BY stream", upstream="many")
    made.sink("rows", "many", Memory())
    made.sink("totals", "counts", Memory(), mode="complete")
    return made


def test_two_queries_read_every_stream_whole_and_in_order(
    spark: SparkSession, tmp_path: Path
) -> None:
    with RunningTopology(topology(), spark, tmp_path / "state", Pace(0.1)) as running:
        assert running.wait(120)
        assert running.finished()
        found: dict[str, list[int]] = {}
        for row in running.rows("rows"):
            found.setdefault(row.stream, []).append(row.row)
        assert found == {f"g{n}": list(range(ROWS)) for n in range(STREAMS)}
        totals = {row.stream: row.n for row in running.rows("totals")}
        assert totals == dict.fromkeys(found, ROWS)
        statuses = running.streams.status()
        assert [status["log"] for status in statuses] == [0, 1]
        assert all(status["streams"]["gone"] == STREAMS for status in statuses)
        assert running.backlog(0.0) == 0
        running.settle()
        latency = running.ledger.take()
        assert sum(entry.rows for entry in latency) == 2 * STREAMS * ROWS


def test_checkpoint_of_other_streams_is_refused(spark: SparkSession, tmp_path: Path) -> None:

    def of(folder: str) -> Topology:
        made = Topology("files", max_latency="5s")
        made.source("files", Streams(files=str(tmp_path / folder), schema="seq BIGINT"))
        made.sink("out", "files", Memory())
        return made

    with RunningTopology(of("a"), spark, tmp_path / "state", Pace(once=True)) as running:
        assert running.wait(60)
    other = RunningTopology(of("b"), spark, tmp_path / "state", Pace(once=True))
    with pytest.raises(InvalidTopology, match=r"source 'files': it was .* and is .* now"), other:
        pass


def test_wrong_file_of_declared_streams_is_refused_before_the_start(
    spark: SparkSession, tmp_path: Path
) -> None:
    file = tmp_path / "streams.toml"
    file.write_text("[streams.a]\nspeed = 3\n")
    made = Topology("files", max_latency="5s")
    streams = Streams(files=str(tmp_path), schema="seq BIGINT", declared=str(file))
    made.source("files", streams)
    made.sink("out", "files", Memory())
    wrong = RunningTopology(made, spark, tmp_path / "state")
    with pytest.raises(InvalidTopology, match=r"source 'files': .* stream 'a': 'speed' is unknown"):
        wrong.__enter__()
