"""Some rows of the files behind a source: how many a file has, and what each column takes.

Only files on this machine are looked at, and little of one: a start waits for it. Of others, and
where there is none yet, bytes are guessed from the types.
"""

import zlib
from bz2 import BZ2Decompressor
from collections.abc import Callable
from fnmatch import fnmatch
from glob import has_magic, iglob
from itertools import islice
from pathlib import Path

import pyarrow as pa
from pyspark.sql.types import StringType

from penstock.fusion.reading import Sample
from penstock.spark.compile.row_bytes import WORD, value_bytes
from penstock.spark.handles.file_scans import FileScan

ROWS = 50_000
ROWS_AT_ONCE = 250  # of Parquet, which may say one long text of all of them
TEXT_BYTES = 256 * 1024
PIECE_BYTES = 4096  # that are decompressed at once: one may become a thousand times as many
TABLE_BYTES = 16 * 2**20  # of Parquet, and of a stripe of ORC, of which no less can be read
LOOKED_AT = 1_000  # entries of folders, until a file is found
OFFSET = 4  # bytes by which Arrow says where a text begins

# By the end of a file's name, as Hadoop knows them.
_DECOMPRESSED: dict[str, Callable[[], "zlib._Decompress | BZ2Decompressor"]] = {
    ".gz": lambda: zlib.decompressobj(zlib.MAX_WBITS | 16),
    ".deflate": zlib.decompressobj,
    ".bz2": BZ2Decompressor,
}
_CLOSED = (".zst", ".lz4", ".snappy", ".xz")


def sample_of(scan: FileScan) -> Sample:
    """Of the first file that has anything, as far as it can be read."""
    guessed = {field.name: value_bytes(field.dataType) for field in scan.schema.fields}
    try:
        file = _first_file(scan)
        if file is None:
            return Sample(scan.format, guessed)
        if scan.format in ("csv", "json"):
            return _of_text(scan, file, guessed)
        table, rows = _parquet(file, guessed) if scan.format == "parquet" else _orc(file)
        if table is None or not table.num_rows:
            return (
                Sample(scan.format, guessed, file_rows=rows)
                if rows
                else Sample(scan.format, guessed)
            )
        declared = {name.lower(): name for name in guessed}  # whatever case files have them in
        sizes = {
            declared[name.lower()]: _value_bytes(column)
            for name, column in zip(table.column_names, table.columns, strict=True)
            if name.lower() in declared
        }
    # It is being written, or is no such file, or has names that no file can have.
    except (OSError, ValueError, EOFError, zlib.error, pa.ArrowException):
        return Sample(scan.format, guessed)
    return Sample(scan.format, guessed | sizes, table.num_rows, rows)


def _first_file(scan: FileScan) -> Path | None:
    """The first by name that Spark would read, of those looked at."""
    place = _on_this_machine(scan.path)
    if place is None:
        return None
    found = sorted(islice(iglob(place), LOOKED_AT)) if has_magic(place) else [place]
    for at in map(Path, found):
        entries = [at] if at.is_file() else sorted(islice(at.rglob("*"), LOOKED_AT))
        for entry in entries:
            hidden = any(map(_is_hidden, entry.relative_to(at).parts))
            wanted = scan.names is None or fnmatch(entry.name, scan.names)
            if wanted and not hidden and entry.is_file() and entry.stat().st_size:
                return entry
    return None


def _on_this_machine(path: str | None) -> str | None:
    """A path without its scheme; as in Hadoop, a per cent sign stands for itself."""
    scheme, colon, rest = (path or "").partition(":")
    if not colon or "/" in scheme:
        return path or None
    place = rest.removeprefix("//")
    return place if scheme == "file" and place.startswith("/") else None


def _is_hidden(name: str) -> bool:
    """Whether Spark passes over a file or folder, such as what it notes beside its own files."""
    return name.startswith(".") or (name.startswith("_") and "=" not in name)


def _parquet(file: Path, wanted: dict[str, float]) -> "tuple[pa.Table | None, int]":
    from pyarrow.parquet import ParquetFile  # takes a moment, which most starts do not need

    declared = {name.lower() for name in wanted}
    with ParquetFile(file, pre_buffer=False, buffer_size=2**20) as opened:
        about = opened.metadata
        if not about.num_rows:
            return None, 0
        group_bytes = sum(about.row_group(i).total_byte_size for i in range(about.num_row_groups))
        at_once = max(1, min(ROWS_AT_ONCE, TABLE_BYTES * about.num_rows // max(1, group_bytes)))
        columns = [name for name in opened.schema_arrow.names if name.lower() in declared]
        batches, left = [], TABLE_BYTES
        for batch in islice(opened.iter_batches(at_once, columns=columns), ROWS // at_once):
            batches.append(batch)
            left -= batch.nbytes
            if left <= 0:
                break
        return (pa.Table.from_batches(batches) if batches else None), about.num_rows


def _orc(file: Path) -> "tuple[pa.Table | None, int]":
    from pyarrow.orc import ORCFile

    opened = ORCFile(file)
    if not opened.nstripes or opened.content_length / opened.nstripes > TABLE_BYTES:
        return None, opened.nrows
    return pa.table(opened.read_stripe(0)), opened.nrows


def _value_bytes(column: "pa.ChunkedArray") -> float:
    """A word, and what lies behind it where that is not the value itself."""
    if pa.types.is_primitive(column.type):
        return WORD
    return WORD + max(0.0, float(column.nbytes) / len(column) - OFFSET)


def _of_text(scan: FileScan, file: Path, guessed: dict[str, float]) -> Sample:
    """What rows have beyond a word for each value is divided among their texts."""
    if not scan.in_lines or file.name.endswith(_CLOSED):
        return Sample(scan.format, guessed)
    head, size_bytes = _beginning(file)
    rows = head.count(b"\n")
    if not rows:
        return Sample(scan.format, guessed)
    row_bytes = (head.rindex(b"\n") + 1) / rows
    file_rows = round(size_bytes / row_bytes)
    texts = [f.name for f in scan.schema.fields if isinstance(f.dataType, StringType)]
    if not texts:
        return Sample(scan.format, guessed, rows, file_rows)
    behind = max(0.0, row_bytes - WORD * (len(guessed) - len(texts))) / len(texts)
    return Sample(scan.format, guessed | dict.fromkeys(texts, WORD + behind), rows, file_rows)


def _beginning(file: Path) -> tuple[bytes, float]:
    """The first bytes of a text, and how many it has, decompressed."""
    size_bytes = file.stat().st_size
    with file.open("rb") as opened:
        if file.suffix not in _DECOMPRESSED:
            return opened.read(TEXT_BYTES), size_bytes
        text, made = bytearray(), _DECOMPRESSED[file.suffix]()
        while len(text) < TEXT_BYTES and not made.eof and (piece := opened.read(PIECE_BYTES)):
            text += made.decompress(piece)
        return bytes(text), size_bytes * len(text) / opened.tell()
