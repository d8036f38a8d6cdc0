"""From records as bytes to rows of a schema, many at once; what is malformed is set apart.

Records are parsed together by Arrow. Only when a parse fails are they halved until the records at
fault stand alone, so sound input costs nothing and k bad records in n cost about k log n.
"""

import io
import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

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
    _parse(_PARSERS[form], records, filled, schema, tables, bad)
    wrong = {number for number, _ in bad}
    good = [number for number in filled if number not in wrong] if wrong else filled
    table = pa.concat_tables(tables) if tables else schema.empty_table()
    return Decoded(_one_batch(table, schema), np.array(good, dtype=np.int64), bad)


def decode_lines(text: bytes, form: str, schema: pa.Schema) -> Decoded | None:
    """Rows of whole lines in one go; None when a line is blank or malformed: then use `decode`."""
    try:
        table = _PARSERS[form](text, schema)
    except MALFORMED:
        return None
    lines = text.count(b"\n")
    if table.num_rows != lines:
        return None
    return Decoded(_one_batch(table, schema), np.arange(lines), ())


def _parse(
    parse: Parse, records: Sequence[bytes], numbers: list[int], schema: pa.Schema,
    tables: list[pa.Table], bad: list[tuple[int, str]],
) -> None:  # fmt: skip
    if not numbers:
        return
    try:
        text = b"\n".join([records[number] for number in numbers]) + b"\n"
        table = parse(text, schema)
        # Two objects in one line would be two rows, and a line break inside quotes one row of two.
        if table.num_rows != len(numbers):
            raise pa.ArrowInvalid(f"{table.num_rows} rows in {len(numbers)} records")
    except MALFORMED as error:
        if len(numbers) == 1:
            bad.append((numbers[0], _clause(error)))
            return
        half = len(numbers) // 2
        _parse(parse, records, numbers[:half], schema, tables, bad)
        _parse(parse, records, numbers[half:], schema, tables, bad)
        return
    tables.append(table)


def _json(text: bytes, schema: pa.Schema) -> pa.Table:
    text.decode()  # Arrow takes bytes that are no UTF-8 for text
    # A record that is `null` ends the whole process inside Arrow's reader (pyarrow 26).
    if _DANGEROUS.search(text) and not _is_object(text):
        raise ValueError("the record is not a JSON object")
    options = pyarrow.json.ParseOptions(
        explicit_schema=_without_zones(schema), unexpected_field_behavior="ignore"
    )
    reading = pyarrow.json.ReadOptions(use_threads=False, block_size=min(len(text) + 1, 2**31 - 1))
    table = pyarrow.json.read_json(io.BytesIO(text), reading, options)
    return table.select(schema.names).cast(schema)


def _is_object(text: bytes) -> bool:
    return text.count(b"\n") == 1 and isinstance(json.loads(text), dict)


def _csv(text: bytes, schema: pa.Schema) -> pa.Table:
    # Times with and without a zone may stand in one column, which only text can hold.
    text_first = pa.schema(
        [
            pa.field(field.name, pa.string()) if pa.types.is_timestamp(field.type) else field
            for field in schema
        ]
    )
    table = pyarrow.csv.read_csv(
        io.BytesIO(text),
        pyarrow.csv.ReadOptions(
            use_threads=False, column_names=schema.names, block_size=min(len(text) + 1, 2**31 - 1)
        ),
        pyarrow.csv.ParseOptions(ignore_empty_lines=False),
        pyarrow.csv.ConvertOptions(
            column_types=text_first, strings_can_be_null=True, quoted_strings_can_be_null=False
        ),
    )
    for place, field in enumerate(schema):
        if pa.types.is_timestamp(field.type):
            table = table.set_column(place, field, _times(table.column(place), field.type))
    return table.cast(schema)


def _times(texts: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray:
    zoned = pc.match_substring_regex(texts, r"(Z|[+-]\d\d:?\d\d)$")
    full = pc.if_else(zoned, texts, pc.binary_join_element_wise(texts, "Z", ""))
    return full.cast(pa.timestamp("us", "UTC")).cast(kind)


_DANGEROUS = re.compile(rb"^[ \t\r]*null|\}[ \t\r]*null", re.MULTILINE)
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
