"""The Arrow files of a channel: written by tasks, read in parts without copying."""

from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from penstock.errors import InvalidInput
from penstock.spark.channels.log import Piece

ROWS_PER_BATCH = 8_192  # of a record batch: what a reader of a few rows has to touch


def write_chunk(table: pa.Table, stream: Any) -> None:
    """Write a file whole; it is nobody's before its batch is published."""
    with pa.ipc.new_file(stream, table.schema) as file:
        file.write_table(table, max_chunksize=ROWS_PER_BATCH)


def read_piece(piece: Piece) -> Iterator[pa.RecordBatch]:
    """The rows of a part of a file, as views into it."""
    try:
        with pa.memory_map(piece.path) as source:
            file = pa.ipc.open_file(source)
            first = 0
            for number in range(file.num_record_batches):
                if first >= piece.end:
                    break
                batch = file.get_batch(number)
                start, end = max(piece.start - first, 0), min(piece.end - first, batch.num_rows)
                if start < end:
                    yield batch.slice(start, end - start)
                first += batch.num_rows
    except (OSError, pa.ArrowInvalid) as error:
        raise InvalidInput(
            f"channel file {piece.path} cannot be read ({error}); its channel is damaged."
        ) from error
