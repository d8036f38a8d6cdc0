"""ChannelWriter in a plain query: once each, also where Spark forgot that a batch was done."""

import shutil
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQueryException

from penstock import ChannelWriter
from penstock.spark.channels.log import Channel
from spark.run_to import LIMIT_S

pytestmark = pytest.mark.spark


def work_off(spark: SparkSession, folder: Path) -> None:
    """A query written without Penstock, one file a batch."""
    reader = spark.readStream.schema("n INT").option("maxFilesPerTrigger", 1)
    query = (
        reader.json(str(folder / "in")).writeStream.foreachBatch(ChannelWriter(folder / "channel"))
        .option("checkpointLocation", str(folder / "my checkpoint"))
        .trigger(availableNow=True).start()
    )  # fmt: skip
    assert query.awaitTermination(LIMIT_S)


def read(spark: SparkSession, folder: Path) -> list[int]:
    reader = spark.readStream.format("penstock-channel").option("path", str(folder / "channel"))
    query = (
        reader.option("reader", "test").load().writeStream.format("memory").queryName("came")
        .option("checkpointLocation", str(folder / "reading"))
        .trigger(availableNow=True).start()
    )  # fmt: skip
    assert query.awaitTermination(LIMIT_S)
    return sorted(row.n for row in spark.table("came").collect())


def test_batches_are_published_once_and_bound_to_their_offsets(
    session: SparkSession, tmp_path: Path
) -> None:
    (tmp_path / "in").mkdir()
    for number in range(3):
        (tmp_path / "in" / f"{number}.json").write_text(f'{{"n": {number}}}\n')
    work_off(session, tmp_path)
    checkpoint = tmp_path / "my checkpoint"
    (checkpoint / "commits" / "2").unlink()  # killed after the batch was published
    (checkpoint / "commits" / ".2.crc").unlink(missing_ok=True)
    work_off(session, tmp_path)
    assert read(session, tmp_path) == [0, 1, 2]

    shutil.copytree(checkpoint, tmp_path / "kept")
    for log in ("commits", "offsets", "sources/0"):  # as one that was restored in part
        for name in ("2", ".2.crc"):
            (checkpoint / log / name).unlink(missing_ok=True)
    (tmp_path / "in" / "2.json").unlink()
    (tmp_path / "in" / "other.json").write_text('{"n": 7}\n')
    with pytest.raises(StreamingQueryException, match="was then read from other offsets"):
        work_off(session, tmp_path)
    assert Channel(tmp_path / "channel").end_row() == 3
