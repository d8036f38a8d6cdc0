"""A batch into a channel: staged by its tasks, then published whole."""

import json
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, Row
from pyspark.sql.types import StructType

from penstock.errors import PenstockError
from penstock.model.arrivals import Arrivals
from penstock.model.sinks import ToChannel
from penstock.spark import handles
from penstock.spark.channels.entries import (
    Chunk,
    arrivals_from,
    arrivals_json,
    chunk_from,
    chunk_name,
)
from penstock.spark.channels.log import Channel
from penstock.spark.checkpoint.batch_offsets import digest_of, keep_offsets, offsets_folder
from penstock.spark.sinks import files as file_sink
from penstock.spark.sinks.files import Target, TaskWriter

NAME = "channel"  # what a ChannelWriter's stages are called


def schema_json(schema: StructType) -> str:
    """A schema as a channel keeps it: names and types, no meta-data, everything nullable."""
    return json.dumps(_plain(schema.jsonValue()), sort_keys=True)


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        fixed = {"nullable": True, "containsNull": True, "valueContainsNull": True, "metadata": {}}
        return {key: fixed.get(key, _plain(item)) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, list) else value


def promise(
    one: Target, chunks: list[Chunk], writer: str, batch_id: int, arrivals: Arrivals | None,
    offsets: str | None,
) -> dict[str, Any]:  # fmt: skip
    """What a commit record says of a batch that is to be published in a channel."""
    return {
        "channel": one.directory,
        "gathered": one.gathered,
        "writer": writer,
        "batch": batch_id,
        "chunks": [chunk.as_json() for chunk in chunks],
        "arrivals": None if arrivals is None else arrivals_json(arrivals),
        "offsets": offsets,
    }


def reported(one: Target, reports: list[Row]) -> list[Chunk]:
    """The files of one sink among those that tasks reported."""
    mine = [report for report in reports if report.sink == one.sink]
    return [Chunk(report.file, report.rows, report.crc32) for report in mine]


def keep_promise(promised: dict[str, Any]) -> bool:
    """Publish, unless that happened before; False if it had."""
    arrivals = promised["arrivals"]
    gathered = Path(promised["gathered"])
    done = Channel(Path(promised["channel"])).publish(
        promised["writer"],
        promised["batch"],
        gathered,
        [chunk_from(chunk) for chunk in promised["chunks"]],
        None if arrivals is None else arrivals_from(arrivals),
        promised.get("offsets"),
    )
    file_sink.remove(str(gathered.parent))
    return done


class ChannelWriter:
    """A function of (batch, id) for `foreachBatch` that publishes each batch once.

    The writer is by default the query's own id, which lives as long as its checkpoint. An entry
    is bound to the offsets of its batch, if the checkpoint is on a local or mounted file system.
    """

    def __init__(self, path: str | Path, writer: str | None = None) -> None:
        self._path = Path(path).absolute()
        self._writer = writer
        self._clean = False  # whether no attempt before this one can have left files

    def __call__(self, batch: DataFrame, batch_id: int) -> None:
        """Stage the batch and publish it; one that came before changes nothing."""
        query_id = _query_id(batch)
        writer = self._writer or query_id
        if not writer:
            raise PenstockError(
                "ChannelWriter was called outside of foreachBatch; give it a writer."
            )
        channel = Channel.create(self._path, schema_json(batch.schema))
        if not self._clean:
            channel.drop_unpublished(writer)
            file_sink.sweep(str(self._path), f"{writer}-{NAME}-", also_gathered=True)
        self._clean = False
        self._publish(batch, batch_id, writer, _offsets(batch, query_id))
        self._clean = True

    def _publish(self, batch: DataFrame, batch_id: int, writer: str, offsets: Path | None) -> None:
        one = file_sink.target(ToChannel(str(self._path)), NAME, None, writer, batch_id)
        reports = batch.mapInArrow(TaskWriter((one,), ""), file_sink.REPORT_SCHEMA).collect()
        if not reports:
            file_sink.discard(one)
            return
        # No record says which files are to be published: their names say whose they are.
        names = [chunk_name(writer, batch_id, place) for place in range(len(reports))]
        chunks = [
            Chunk(name, report.rows, report.crc32)
            for name, report in zip(names, reports, strict=True)
        ]
        file_sink.gather(one, [report.file for report in reports], None, names)
        keep_offsets(offsets, batch_id)
        digest = digest_of(offsets, batch_id)
        keep_promise(promise(one, chunks, writer, batch_id, None, digest))


def _query_id(batch: DataFrame) -> str | None:
    return batch.sparkSession.sparkContext.getLocalProperty("sql.streaming.queryId")


def _offsets(batch: DataFrame, query_id: str | None) -> Path | None:
    """Where Spark logs the offsets of the query that a batch is of; None where nobody knows."""
    root = None if not query_id else handles.checkpoint_of_id(batch.sparkSession, query_id)
    return None if root is None else offsets_folder(root)
