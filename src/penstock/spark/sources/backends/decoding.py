"""From records as bytes to rows of a schema, many at once; what is malformed is set apart.

Records are parsed together by Arrow. Only when a parse fails are they halved until the records at
fault stand alone, so sound input costs nothing and k bad records in n cost about k log n.

Arrow knows no records: it takes two objects in one line for two rows, and an object over two lines
for one. That as many rows came as records went in says nothing, as one error makes up for another.
So each record is held to be at least one row, or at most one; as many rows as records are then one
for each.
"""

import io
import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import count

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.json

from penstock.errors import InvalidInput
from penstock.model.observation import Ints

REASON_LENGTH = 300  # a reason is read by people


@dataclass(frozen=True)
class Decoded:
    """Rows with the number of the record each came from, and the records that gave none."""

    rows: pa.RecordBatch
    records: Ints
    bad: Sequence[tuple[int, str]]  # record and reason, in order


Parse = Callable[[bytes, pa.Schema], pa.Table]

# What a record can be to blame for. Arrow's other failures, such as no memory or no thread to be
# had, say nothing about it: the task ends with them, and another reads the same records again.
MALFORMED = (
    ValueError, RecursionError, pa.ArrowTypeError, pa.ArrowKeyError, pa.ArrowIndexError,
    pa.ArrowNotImplementedError, pa.ArrowCapacityError, pa.ArrowSerializationError,
)  # fmt: skip


def decode(records: Sequence[bytes], form: str, schema: pa.Schema) -> Decoded:
    """Rows of records in a format of text lines: `json` or `csv`; blank records are none."""
    if form not in _PARSERS:
        raise InvalidInput(f"format is {form!r}; allowed for records: {', '.join(_PARSERS)}.")
    if form == "json":  # a record may be laid out over lines; its texts cannot hold line breaks
        records = [r.replace(b"\n", b" ") if b"\n" in r else r for r in records]
    filled = [number for number, record in enumerate(records) if record.strip()]
    tables: list[pa.Table] = []
    bad: list[tuple[int, str]] = []
    _parse(form, records, filled, schema, tables, bad)
    wrong = {number for number, _ in bad}
    good = [number for number in filled if number not in wrong] if wrong else filled
    table = pa.concat_tables(tables) if tables else schema.empty_table()
    return Decoded(_one_batch(table, schema), np.array(good, dtype=np.int64), bad)


def decode_lines(text: bytes, form: str, schema: pa.Schema) -> Decoded | None:
    """Rows of whole lines in one go; None when a line is blank or malformed: then use `decode`."""
    if form == "csv" and len(schema) == 1 and _BLANK_LINE.search(text):
        return None  # where there is one column, Arrow takes a blank line for a row
    try:
        table = _PARSERS[form](text, schema)
    except MALFORMED:
        return None
    lines = _lines(text)
    if table.num_rows != lines:
        return None
    return Decoded(_one_batch(table, schema), np.arange(lines), ())


def _parse(
    form: str, records: Sequence[bytes], numbers: list[int], schema: pa.Schema,
    tables: list[pa.Table], bad: list[tuple[int, str]],
) -> None:  # fmt: skip
    if not numbers:
        return
    try:
        table = _together(form, [records[number] for number in numbers], schema)
        if table.num_rows != len(numbers):
            raise pa.ArrowInvalid(f"{table.num_rows} rows in {len(numbers)} records")
    except MALFORMED as error:
        if len(numbers) == 1:
            bad.append((numbers[0], _clause(error)))
            return
        half = len(numbers) // 2
        _parse(form, records, numbers[:half], schema, tables, bad)
        _parse(form, records, numbers[half:], schema, tables, bad)
        return
    tables.append(table)


def _together(form: str, records: Sequence[bytes], schema: pa.Schema) -> pa.Table:
    text = b"\n".join(records) + b"\n"
    if form == "csv" and (_lines(text) != len(records) or _breaks_inside(text)):
        return _csv_over_lines(records, schema)
    return _PARSERS[form](text, schema)


def _json(text: bytes, schema: pa.Schema) -> pa.Table:
    """Rows of lines of which each has one at least: between `}` and `{` there can be no value."""
    text.decode()  # Arrow takes bytes that are no UTF-8 for text
    if not _braces_at_breaks(text):
        raise ValueError("a record is not a JSON object")
    # A record that is `null` ends the whole process inside Arrow's reader (pyarrow 26).
    null = b"null" in text and (_NULL_FIRST.match(text) or _NULL_NEXT.search(text))
    if null and not _is_object(text):
        raise ValueError("the record is not a JSON object")
    options = pyarrow.json.ParseOptions(
        explicit_schema=_without_zones(schema), unexpected_field_behavior="ignore"
    )
    reading = pyarrow.json.ReadOptions(use_threads=False, block_size=min(len(text) + 1, 2**31 - 1))
    table = pyarrow.json.read_json(io.BytesIO(text), reading, options)
    return table.select(schema.names).cast(schema)


def _braces_at_breaks(text: bytes) -> bool:
    """Whether `}` stands before and `{` after each line break but the last."""
    octets = np.frombuffer(text, np.uint8)
    breaks = np.flatnonzero(octets == _LINE_BREAK)[:-1]
    if (octets[breaks - 1] == _CLOSING).all() and (octets[breaks + 1] == _OPENING).all():
        return True
    return len(_SPACED_BREAK.findall(text)) == len(breaks)


def _lines(text: bytes) -> int:
    return int(np.count_nonzero(np.frombuffer(text, np.uint8) == _LINE_BREAK))


def _is_object(text: bytes) -> bool:
    return text.count(b"\n") == 1 and isinstance(json.loads(text), dict)


def _csv(text: bytes, schema: pa.Schema) -> pa.Table:
    """Rows of lines of which each is one at most: nothing but their ends can end a row.

    An empty row is added. A quote that is still open swallows it and is found by that, also that of
    the last line, which Arrow closes.
    """
    if _breaks_inside(text):
        raise ValueError("a carriage return is inside a line")
    table = _read_csv(text + b"," * (len(schema) - 1) + b"\n", schema)
    if table.num_rows <= _lines(text):
        raise ValueError("a quote is not closed, or a line is blank")
    return _cast(table.slice(0, table.num_rows - 1), schema)


def _csv_over_lines(records: Sequence[bytes], schema: pa.Schema) -> pa.Table:
    """Rows of records that may hold line breaks in quotes.

    Each ends with a mark that none of them holds, in a column of its own. So where there are as
    many rows as records and each has the mark, each is of one record.
    """
    joined = b"".join(records)
    mark = next(m for m in (b"\x01" * size for size in count(1)) if m not in joined)
    name = "".join(schema.names) + "mark"
    marked = b"".join([record.removesuffix(b"\r") + b"," + mark + b"\n" for record in records])
    table = _read_csv(marked, schema.append(pa.field(name, pa.binary())))
    marks = table.column(name)
    if marks.null_count or not pc.all(pc.equal(marks, mark), min_count=0).as_py():
        raise ValueError("a line break is not in quotes")
    return _cast(table.drop_columns([name]), schema)


def _breaks_inside(text: bytes) -> bool:
    """Whether a carriage return is not at a line's end: there Arrow would begin a row."""
    if b"\r" not in text:
        return False
    octets = np.frombuffer(text, np.uint8)
    return bool(((octets[:-1] == _RETURN) & (octets[1:] != _LINE_BREAK)).any())


def _read_csv(text: bytes, schema: pa.Schema) -> pa.Table:
    # Times with and without a zone may stand in one column, which only text can hold.
    text_first = pa.schema(
        [
            pa.field(field.name, pa.string()) if pa.types.is_timestamp(field.type) else field
            for field in schema
        ]
    )
    return pyarrow.csv.read_csv(
        io.BytesIO(text),
        pyarrow.csv.ReadOptions(
            use_threads=False, column_names=schema.names, block_size=min(len(text) + 1, 2**31 - 1)
        ),
        pyarrow.csv.ParseOptions(ignore_empty_lines=len(schema) > 1),
        pyarrow.csv.ConvertOptions(
            column_types=text_first, strings_can_be_null=True, quoted_strings_can_be_null=False
        ),
    )


def _cast(table: pa.Table, schema: pa.Schema) -> pa.Table:
    for place, field in enumerate(schema):
        if pa.types.is_timestamp(field.type):
            table = table.set_column(place, field, _times(table.column(place), field.type))
    return table.cast(schema)


def _times(texts: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray:
    zoned = pc.match_substring_regex(texts, r"(Z|[+-]\d\d:?\d\d)$")
    full = pc.if_else(zoned, texts, pc.binary_join_element_wise(texts, "Z", ""))
    return full.cast(pa.timestamp("us", "UTC")).cast(kind)


_LINE_BREAK, _RETURN, _CLOSING, _OPENING = b"\n\r}{"
_SPACED_BREAK = re.compile(rb"\}[ \t\r]*\n[ \t\r]*(?=\{)")
_BLANK_LINE = re.compile(rb"^[ \t\r\f\v]*\n", re.MULTILINE)
_NULL_FIRST = re.compile(rb"[ \t\r]*null")
_NULL_NEXT = re.compile(rb"\}[ \t\r]*null")
_PARSERS: dict[str, Parse] = {"json": _json, "csv": _csv}


def _without_zones(schema: pa.Schema) -> pa.Schema:
    """Times are read as written and taken for UTC."""
    return pa.schema(
        [
            pa.field(field.name, pa.timestamp("us"), field.nullable)
            if pa.types.is_timestamp(field.type)
            else field
            for field in schema
        ]
    )


def _one_batch(table: pa.Table, schema: pa.Schema) -> pa.RecordBatch:
    columns = [
        column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)
        for column in table.columns
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _clause(error: Exception) -> str:
    return str(error).strip().splitlines()[0][:REASON_LENGTH] or type(error).__name__
