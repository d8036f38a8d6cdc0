"""The Arrow files of a channel: written by tasks, read in parts without copying."""

import zlib
from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from penstock.errors import InvalidInput
from penstock.spark.channels.log import Piece

ROWS_PER_BATCH = 8_192  # of a record batch: what a reader of a few rows has to touch


class Summed:
    """A stream that is written to, and the checksum of all that was."""

    closed = False

    def __init__(self, stream: Any) -> None:
        self._stream = stream
        self.crc32 = 0

    def write(self, data: Any) -> None:
        """Write on."""
        self.crc32 = zlib.crc32(data, self.crc32)
        self._stream.write(data)

    def flush(self) -> None:
        """Arrow asks for it; who opened the stream syncs it."""


def write_chunk(table: pa.Table, stream: Any) -> None:
    """Write a file whole; it is nobody's before its batch is published."""
    with pa.ipc.new_file(stream, table.schema) as file:
        file.write_table(table, max_chunksize=ROWS_PER_BATCH)


def read_piece(piece: Piece) -> Iterator[pa.RecordBatch]:
    """The rows of a part of a file, as views into it.

    Spark believes what Arrow says, so this is where it is checked, once: the bytes are those that
    were written, and what they say of themselves holds.
    """
    try:
        with pa.memory_map(piece.path) as source:
            if piece.crc32 is not None and zlib.crc32(source.read_buffer()) != piece.crc32:
                raise pa.ArrowInvalid("its checksum does not fit")
            file = pa.ipc.open_file(source)
            first = 0
            for number in range(file.num_record_batches):
                if first >= piece.end:
                    break
                batch = file.get_batch(number)
                start, end = max(piece.start - first, 0), min(piece.end - first, batch.num_rows)
                if start < end:
                    rows = batch.slice(start, end - start)
                    rows.validate(full=True)
                    yield rows
                first += batch.num_rows
    except (OSError, pa.ArrowInvalid) as error:
        raise InvalidInput(
            f"channel file {piece.path} cannot be read ({error}); its channel is damaged."
        ) from error
