"""Files written by the tasks of a batch, all file sinks in one job, published whole.

Each task writes one file per sink under a name nobody else has, where readers do not look, and
reports it. The driver gathers the reported files of a batch in one directory, so that whatever a
failed or repeated task left is never seen; renaming that directory publishes the batch.
"""

import errno
import json
import math
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import csv, orc
from pyarrow import parquet as pq

from penstock.errors import PenstockError
from penstock.model.sinks import Files, ToChannel
from penstock.spark.channels.chunks import Summed, write_chunk
from penstock.spark.sinks.places import is_url, place_of

STAGED = "_staged"  # a name that starts with an underscore is skipped by readers
REPORT_SCHEMA = "sink STRING, file STRING, crc32 BIGINT, rows BIGINT"
_REPORT = pa.schema(
    [("sink", pa.string()), ("file", pa.string()), ("crc32", pa.int64()), ("rows", pa.int64())]
)


@dataclass(frozen=True)
class Target:
    """One file sink of one batch."""

    sink: str
    node: str | None  # the column its rows come in; None when the batch holds only these rows
    format: str
    directory: str  # of the sink
    stage: str  # of this batch: writer, sink and batch id

    @property
    def attempts(self) -> str:
        """Where tasks write."""
        return f"{self.directory}/{STAGED}/{self.stage}/attempts"

    @property
    def gathered(self) -> str:
        """Where the files that count are gathered."""
        return f"{self.directory}/{STAGED}/{self.stage}/batch"


def target(
    sink: Files | ToChannel, name: str, node: str | None, writer: str, batch_id: int
) -> Target:
    """What a batch of a query leaves at a file sink; tasks have another working directory.

    `writer` tells a run from all others, and its queries from each other.
    """
    kind = sink.format if isinstance(sink, Files) else "arrow"
    return Target(name, node, kind, directory_of(sink.path), f"{writer}-{name}-{batch_id}")


def directory_of(path: str) -> str:
    """A sink's directory as every process knows it."""
    return (path if is_url(path) else str(Path(path).absolute())).rstrip("/")


class TaskWriter:
    """What runs in each task: rows in, one file per sink out, and a report of the files."""

    def __init__(self, targets: tuple[Target, ...], tag: str) -> None:
        self._targets = targets
        self._tag = tag

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Write the rows of one partition."""
        parts: dict[str, list[pa.Table]] = {target.sink: [] for target in self._targets}
        for batch in batches:
            for one in self._targets:
                rows = self._rows(batch, one)
                if rows.num_rows:
                    parts[one.sink].append(rows)
        written = [
            (one.sink, *_write(pa.concat_tables(parts[one.sink]), one), rows)
            for one in self._targets
            if (rows := sum(table.num_rows for table in parts[one.sink]))
        ]
        reports = [dict(zip(_REPORT.names, report, strict=True)) for report in written]
        yield pa.RecordBatch.from_pylist(reports, schema=_REPORT)

    def _rows(self, batch: pa.RecordBatch, one: Target) -> pa.Table:
        if one.node is None:
            return pa.Table.from_batches([batch])
        mine = batch.filter(pa.compute.equal(batch.column(self._tag), one.node))
        return pa.Table.from_struct_array(mine.column(one.node))


def gather(
    one: Target, files: list[str], schema: pa.Schema | None, names: list[str] | None = None
) -> None:
    """Put the files that count into one directory; an empty one of `schema` if there are none.

    `names` are others than tasks gave them.
    Their data is on the disk since their tasks ended; when this returns, their names are too.
    """
    place = place_of(one.gathered)
    place.remove_tree(one.gathered)  # of an attempt at this batch that did not come to a commit
    place.make(one.gathered)
    if not files and schema is not None:
        files = [_write(schema.empty_table(), one)[0]]
    for file, name in zip(files, names or files, strict=True):
        place.move(f"{one.attempts}/{file}", f"{one.gathered}/{name}")
    place.sync(one.gathered)


def discard(one: Target) -> None:
    """Remove what is staged for a batch."""
    remove(one.attempts.rpartition("/")[0])


def sweep(directory: str, prefix: str = "", also_gathered: bool = False) -> None:
    """Remove what tasks that nobody waited for have staged.

    What is gathered stays, unless no record can promise it. Only for whoever keeps other writers
    of stages of this prefix out.
    """
    staged = f"{directory}/{STAGED}"
    place = place_of(staged)
    for stage in place.names(staged):
        if stage.startswith(prefix):
            remove(f"{staged}/{stage}/attempts")
            if also_gathered or not place.names(f"{staged}/{stage}"):
                remove(f"{staged}/{stage}")


def remove(path: str) -> None:
    """Remove a directory, if it is there; what a straggler adds meanwhile goes at a next start."""
    try:
        place_of(path).remove_tree(path)
    except OSError as error:
        if error.errno != errno.ENOTEMPTY:
            raise


def exists(path: str) -> bool:
    """Whether there is anything at a path."""
    return place_of(path).exists(path)


def publish(gathered: str, final: str) -> None:
    """Rename a gathered batch into place, unless that happened before."""
    place = place_of(gathered)
    if place.exists(gathered):
        if place.exists(final):
            raise PenstockError(
                f"{final} exists already and was not written by this run; move it away (the batch "
                f"is kept at {gathered})."
            )
        place.move(gathered, final)
    elif not place.exists(final):
        raise PenstockError(
            f"{final} was promised by a commit record but is neither in place nor staged at "
            f"{gathered}; restore one of them, or remove the record to have the batch written "
            "again."
        )
    place.sync(final.rpartition("/")[0])
    remove(gathered.rpartition("/")[0])


def _write(table: pa.Table, one: Target) -> tuple[str, int]:
    """Write a file; its name and checksum."""
    name = f"part-{uuid.uuid4().hex}.{one.format}"
    place = place_of(one.attempts)
    place.make(one.attempts)
    with place.new_file(f"{one.attempts}/{name}") as stream:
        _WRITERS[one.format](table, summed := Summed(stream))
    return name, summed.crc32


def _write_json(table: pa.Table, stream: Any) -> None:
    """One object a line; pyarrow reads that form but does not write it."""
    for record in _records(table):
        stream.write(json.dumps(_plain(record), default=str, allow_nan=False).encode() + b"\n")


def _records(table: pa.Table) -> list[dict[str, Any]]:
    """Rows as Python has them; moments that it has not, before year 1 or after 9999, as text."""
    try:
        records: list[dict[str, Any]] = table.to_pylist()
    except OverflowError:
        columns = {name: _values(table.column(name)) for name in table.column_names}
        return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    return records


def _values(column: pa.ChunkedArray) -> list[Any]:
    try:
        values: list[Any] = column.to_pylist()
    except OverflowError:
        values = column.cast(_as_text(column.type)).to_pylist()
    return values


def _as_text(kind: pa.DataType) -> pa.DataType:
    """A type with text for moments and days, at any depth."""
    if pa.types.is_map(kind):
        return pa.map_(_as_text(kind.key_type), _as_text(kind.item_type))
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(_as_text(field.type)) for field in kind])
    if pa.types.is_list(kind):
        return pa.list_(_as_text(kind.value_type))
    return pa.string() if pa.types.is_timestamp(kind) or pa.types.is_date(kind) else kind


def _plain(value: Any) -> Any:
    """NaN and infinities, which JSON has not, as null, at any depth; maps are lists of pairs."""
    if isinstance(value, dict):
        return {name: _plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


_WRITERS: dict[str, Callable[[pa.Table, Any], None]] = {
    "parquet": pq.write_table,
    "csv": csv.write_csv,
    "orc": orc.write_table,
    "json": _write_json,
    "arrow": write_chunk,
}
