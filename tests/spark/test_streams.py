"""Many streams as a source of a topology, in a local session."""

import json
import time
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from brokers import redis_server
from penstock.errors import InvalidTopology
from penstock.model.sinks import Memory
from penstock.model.sources import Admission, Streams
from penstock.model.topology import Topology
from penstock.spark.run.together import Pace, RunningTopology
from penstock.spark.sources.dead_letters import read_letters
from penstock.workloads.generator import Generator
from penstock.workloads.profiles import constant

pytestmark = pytest.mark.spark

STREAMS, ROWS = 6, 300
LIMIT_S = 300.0


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
    session: SparkSession, tmp_path: Path
) -> None:
    with RunningTopology(topology(), session, tmp_path / "state", Pace(0.1)) as running:
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
        running.settle(LIMIT_S)
        latency = running.ledger.take()
        # Both queries read every row, which is one row all the same.
        assert sum(entry.rows for entry in latency) == pytest.approx(STREAMS * ROWS)


def test_checkpoint_of_other_streams_is_refused(session: SparkSession, tmp_path: Path) -> None:

    def of(folder: str) -> Topology:
        made = Topology("files", max_latency="5s")
        made.source("files", Streams(files=str(tmp_path / folder), schema="seq BIGINT"))
        made.sink("out", "files", Memory())
        return made

    with RunningTopology(of("a"), session, tmp_path / "state", Pace(once=True)) as running:
        assert running.wait(LIMIT_S)
    other = RunningTopology(of("b"), session, tmp_path / "state", Pace(once=True))
    with pytest.raises(InvalidTopology, match=r"source 'files': it was .* and is .* now"), other:
        pass


def test_wrong_file_of_declared_streams_is_refused_before_the_start(
    session: SparkSession, tmp_path: Path
) -> None:
    file = tmp_path / "streams.toml"
    file.write_text("[streams.a]\nspeed = 3\n")
    made = Topology("files", max_latency="5s")
    streams = Streams(files=str(tmp_path), schema="seq BIGINT", declared=str(file))
    made.source("files", streams)
    made.sink("out", "files", Memory())
    wrong = RunningTopology(made, session, tmp_path / "state")
    with pytest.raises(InvalidTopology, match=r"source 'files': .* stream 'a': 'speed' is unknown"):
        wrong.__enter__()


@pytest.mark.parametrize("columns", ["a INT, seq BIGINT NOT NULL", "seq STRUCT<x: INT NOT NULL>"])
def test_columns_without_nulls_are_refused(
    session: SparkSession, tmp_path: Path, columns: str
) -> None:
    made = Topology("files", max_latency="5s")
    made.source("files", Streams(files=str(tmp_path), schema=columns))
    made.sink("out", "files", Memory())
    wrong = RunningTopology(made, session, tmp_path / "state")
    with pytest.raises(InvalidTopology, match=r"source 'files': column 'seq' is declared NOT NULL"):
        wrong.__enter__()


def test_rows_of_arrow_files_arrive_as_they_were_written(
    session: SparkSession, tmp_path: Path
) -> None:
    """They cross to Spark in packs, which nobody must notice: values, order and counts."""
    folder = tmp_path / "in"
    folder.mkdir()
    for name in ("a", "b"):
        with pa.ipc.new_stream(str(folder / f"{name}.arrow"), ARROW) as writer:
            for first in (0, 700):
                writer.write_batch(arrow_rows(name, range(first, first + 700)))
    made = Topology("arrow", max_latency="5s")
    columns = (
        "seq BIGINT, text STRING, at TIMESTAMP, marks ARRAY<INT>, `a b` STRUCT<x: DOUBLE>, "
        "flag BOOLEAN, day DATE, price DECIMAL(9, 2), `deg °` FLOAT"
    )
    streams = Streams(files=str(folder), format="arrow", schema=columns, stream_column="stream")
    made.source("rows", streams)
    made.sink("out", "rows", Memory())
    with RunningTopology(made, session, tmp_path / "state", Pace(once=True)) as running:
        assert running.wait(120)
        found = running.rows("out")
        running.settle(LIMIT_S)
        assert sum(report.rows for report in running.reports.take()) == 2_800
    assert found[0].asDict().keys() == {*ARROW.names, "stream"}
    for name in ("a", "b"):
        of = [row for row in found if row.stream == f"{name}.arrow"]
        expected = arrow_rows(name, range(1_400)).to_pylist()
        got = [row.asDict(recursive=True) for row in of]
        for row in got:
            del row["stream"]
            row["at"] = row["at"] and row["at"].replace(tzinfo=UTC)
        assert got == expected


ARROW = pa.schema(
    [
        ("seq", pa.int64()), ("text", pa.string()), ("at", pa.timestamp("us", "UTC")),
        ("marks", pa.list_(pa.int32())), ("a b", pa.struct([("x", pa.float64())])),
        ("flag", pa.bool_()), ("day", pa.date32()), ("price", pa.decimal128(9, 2)),
        ("deg °", pa.float32()),
    ]
)  # fmt: skip


def arrow_rows(name: str, seqs: range) -> pa.RecordBatch:
    """Values of every kind, some of them missing."""
    rows = [
        {
            "seq": seq if seq % 7 else None,
            "text": f"{name}{seq}" if seq % 5 else None,
            "at": datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=seq) if seq % 3 else None,
            "marks": [seq, None] if seq % 4 else None,
            "a b": {"x": seq / 2},
            "flag": bool(seq % 2) if seq % 11 else None,
            "day": date(2026, 1, 1) + timedelta(days=seq) if seq % 6 else None,
            "price": Decimal(seq) / 100 if seq % 9 else None,
            "deg °": seq / 4,
        }
        for seq in seqs
    ]
    return pa.RecordBatch.from_pylist(rows, schema=ARROW)


@pytest.mark.skipif(redis_server.missing() is not None, reason=str(redis_server.missing()))
def test_a_server_away_is_waited_for_while_files_flow(
    session: SparkSession, tmp_path: Path
) -> None:
    (tmp_path / "redis").mkdir()
    (tmp_path / "in").mkdir()
    log = tmp_path / "in" / "log.json"

    def write_file(seqs: range) -> None:
        with log.open("a") as file:
            file.writelines(json.dumps({"seq": seq}) + "\n" for seq in seqs)

    with redis_server.redis_server(tmp_path / "redis") as server:

        def write_redis(*values: bytes) -> list[bytes]:
            client = server.client()
            ids = [client.xadd("cab:1", {"value": value}) for value in values]
            client.close()
            return ids

        ids = write_redis(b'{"seq": 0}', b"{broken", b'{"seq": 1}')
        write_file(range(3))
        with RunningTopology(
            both(server.url, log), session, tmp_path / "state", Pace(0.1)
        ) as running:

            def seen() -> dict[str, list[int]]:
                found: dict[str, list[int]] = {}
                for row in running.rows("out"):
                    found.setdefault(row.stream, []).append(row.seq)
                return found

            def notes() -> list[str]:
                (status,) = running.streams.status(source="cabs")
                return list(status["notes"])

            await_that(running, lambda: seen() == {"cab:1": [0, 1], "log.json": [0, 1, 2]})
            (letter,) = read_letters(next((tmp_path / "state").rglob("dead-letters"))).to_pylist()
            assert letter.pop("reason")
            assert letter == {"stream": "cab:1", "offset": ids[1].decode(), "raw": b"{broken"}

            server.kill()
            await_that(running, lambda: any("waiting for the redis" in note for note in notes()))
            write_file(range(3, 6))
            await_that(running, lambda: seen()["log.json"] == [0, 1, 2, 3, 4, 5])

            server.start()
            write_redis(b'{"seq": 2}', b'{"seq": 3}')
            await_that(running, lambda: seen()["cab:1"] == [0, 1, 2, 3])
            await_that(running, lambda: notes() == [])
            assert running.streams.status(source="cabs")[0]["malformed_rows"] == 1


def both(redis: str, log: Path) -> Topology:
    """A server's streams and a file's in one query."""
    made = Topology("both", max_latency="30s")
    made.source(
        "cabs", Streams(redis=redis, keys="cab:*", schema="seq BIGINT", stream_column="stream")
    )
    made.source("logs", Streams(files=str(log.parent), schema="seq BIGINT", stream_column="stream"))
    made.add("both", "SELECT * FROM cabs UNION ALL SELECT * FROM logs", ["cabs", "logs"])
    made.sink("out", "both", Memory())
    return made


def await_that(running: RunningTopology, holds: Callable[[], bool]) -> None:
    """Wait for a condition, or for the query to fail."""
    deadline = time.monotonic() + LIMIT_S
    while not holds():
        running.raise_failure()
        assert time.monotonic() < deadline
        time.sleep(0.1)
