"""Some rows of the files behind a source: how many a file has, and what each column takes.

Only files on this machine are looked at, and little of one: a start waits for it. Of others, and
where there is none yet, bytes are guessed from the types.
"""

from itertools import islice
from os import SEEK_END
from pathlib import Path
from urllib.parse import unquote, urlparse

import pyarrow as pa
from pyspark.sql.types import StringType, StructType

from penstock.fusion.reading import Sample
from penstock.spark.compile.row_bytes import WORD, value_bytes
from penstock.spark.handles.file_scans import FileScan

ROWS = 50_000
TEXT_BYTES = 256 * 1024
STRIPE_BYTES = 16 * 2**20  # of ORC, of which no less can be read
LOOKED_AT = 1_000  # entries of folders, until a file is found
OFFSET = 4  # bytes by which Arrow says where a text begins


def sample_of(scan: FileScan, schema: StructType) -> Sample:
    """Of the first file, as far as it can be read."""
    guessed = {field.name: value_bytes(field.dataType) for field in schema.fields}
    file = _first_file(scan.path)
    if file is None:
        return Sample(scan.format, guessed)
    try:
        if scan.format in ("csv", "json"):
            return _of_text(scan.format, file, schema, guessed)
        table, rows = _parquet(file) if scan.format == "parquet" else _orc(file)
    except (OSError, pa.ArrowException):  # it is being written, or is no such file
        return Sample(scan.format, guessed)
    if table is None or not table.num_rows:
        return Sample(scan.format, guessed)
    sizes = {name: _value_bytes(table[name]) for name in table.column_names if name in guessed}
    return Sample(scan.format, guessed | sizes, table.num_rows, rows)


def _first_file(path: str | None) -> Path | None:
    """The first by name that Spark would read, of those looked at."""
    parsed = urlparse(path or "")
    if not parsed.path or parsed.scheme not in ("", "file"):
        return None
    at = Path(unquote(parsed.path) if parsed.scheme else str(path))
    if at.is_file():
        return at
    try:
        entries = sorted(islice(at.rglob("*"), LOOKED_AT))
        return next(
            (one for one in entries if one.is_file() and not one.name.startswith(("_", "."))), None
        )
    except OSError:
        return None


def _parquet(file: Path) -> "tuple[pa.Table | None, int]":
    from pyarrow.parquet import ParquetFile  # takes a moment, which most starts do not need

    with ParquetFile(file, pre_buffer=False, buffer_size=2**20) as opened:
        batch, rows = next(opened.iter_batches(ROWS), None), opened.metadata.num_rows
    return None if batch is None else pa.Table.from_batches([batch]), rows


def _orc(file: Path) -> "tuple[pa.Table | None, int]":
    from pyarrow.orc import ORCFile

    opened = ORCFile(file)
    if not opened.nstripes or opened.content_length / opened.nstripes > STRIPE_BYTES:
        return None, opened.nrows
    return pa.table(opened.read_stripe(0)), opened.nrows


def _value_bytes(column: "pa.ChunkedArray") -> float:
    """A word, and what lies behind it where that is not the value itself."""
    if pa.types.is_primitive(column.type):
        return WORD
    return WORD + max(0.0, float(column.nbytes) / len(column) - OFFSET)


def _of_text(format_: str, file: Path, schema: StructType, guessed: dict[str, float]) -> Sample:
    """What rows have beyond a word for each value is divided among their texts."""
    with file.open("rb") as opened:
        head = opened.read(TEXT_BYTES)
        size_bytes = opened.seek(0, SEEK_END)
    rows = head.count(b"\n")
    if not rows:
        return Sample(format_, guessed)
    row_bytes = (head.rindex(b"\n") + 1) / rows
    file_rows = round(size_bytes / row_bytes)
    texts = [field.name for field in schema.fields if isinstance(field.dataType, StringType)]
    if not texts:
        return Sample(format_, guessed, rows, file_rows)
    behind = max(0.0, row_bytes - WORD * (len(guessed) - len(texts))) / len(texts)
    return Sample(format_, guessed | dict.fromkeys(texts, WORD + behind), rows, file_rows)
