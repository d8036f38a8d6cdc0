"""Records of brokers to chunks: values decoded, with columns for where they lay and when."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.errors import InvalidInput
from penstock.model.observation import Ints
from penstock.spark.sources.backends.backend import Chunk, Malformed
from penstock.spark.sources.backends.decoding import Decoded, decode

FORMATS = ("json", "csv", "raw")
STARTS, LOST = ("first", "now"), ("suspend", "skip")  # of each the default first
STAMP = pa.timestamp("us", "UTC")
RAW_TYPES = (pa.string(), pa.binary())


def group_of(options: Mapping[str, Any]) -> str | None:
    """The consumer group that is told how far streams are read; None: none is."""
    group = options.get("group")
    if group is not None and (not isinstance(group, str) or not group.strip()):
        raise InvalidInput(f"group is {group!r}; it must be the name of a consumer group.")
    return group


@dataclass(frozen=True)
class Records:
    """Values in the order they are to have, grouped by range."""

    values: Sequence[bytes | None]
    range_of: Ints  # row numbers in the Ranges that were asked for, one a value
    stamp_ms: Ints  # when each arrived
    offsets: Sequence[str]  # as a person would look each up


@dataclass(frozen=True)
class PayloadForm:
    """How values become rows: a format, and which columns of the schema are not in the value."""

    form: str
    offset_column: str | None
    timestamp_column: str | None

    @classmethod
    def from_options(cls, options: Mapping[str, Any]) -> "PayloadForm":
        """From `format`, `offset_column` and `timestamp_column`."""
        form = options.get("format", "json")
        if form not in FORMATS:
            raise InvalidInput(f"format is {form!r}; allowed for brokers: {', '.join(FORMATS)}.")
        for name in ("offset_column", "timestamp_column"):
            if not isinstance(options.get(name, ""), str):
                raise InvalidInput(f"{name} is {options[name]!r}; it must be a column of schema.")
        return cls(form, options.get("offset_column"), options.get("timestamp_column"))

    def chunk(self, records: Records, streams: Sequence[str], schema: pa.Schema) -> Chunk:
        """Rows of the schema; what gives none is set apart with its bytes."""
        inner = self._inner(schema)
        decoded = self._decode(records.values, inner)
        columns = dict(zip(inner.names, decoded.rows.columns, strict=True))
        if self.offset_column is not None:
            columns[self.offset_column] = pa.array(records.offsets).take(decoded.records)
        if self.timestamp_column is not None:
            stamp_us = records.stamp_ms[decoded.records] * 1000
            columns[self.timestamp_column] = pa.array(stamp_us).cast(STAMP)
        ranges, counts = np.unique(records.range_of[decoded.records], return_counts=True)
        malformed = [
            Malformed(
                streams[int(records.range_of[number])], records.offsets[number], reason,
                records.values[number] or b"",
            )
            for number, reason in decoded.bad
        ]  # fmt: skip
        batch = pa.RecordBatch.from_arrays([columns[n] for n in schema.names], schema=schema)
        return Chunk(batch, ranges, counts, malformed)

    def check(self, schema: pa.Schema) -> None:
        """Refuse a schema without the columns that are asked for, or with none for the value."""
        own = (
            ("offset_column", self.offset_column, pa.string(), "STRING"),
            ("timestamp_column", self.timestamp_column, STAMP, "TIMESTAMP"),
        )
        for option, name, kind, shown in own:
            if name is not None and (name not in schema.names or schema.field(name).type != kind):
                raise InvalidInput(
                    f"{option} is {name!r}; Streams(schema) must have this column as {shown}."
                )
        inner = self._inner(schema)
        if self.form == "raw" and (len(inner) != 1 or inner.field(0).type not in RAW_TYPES):
            raise InvalidInput(
                "format is 'raw'; Streams(schema) must have one STRING or BINARY column for the "
                "value, beside offset_column and timestamp_column."
            )

    def _inner(self, schema: pa.Schema) -> pa.Schema:
        """What is in the value."""
        own = (self.offset_column, self.timestamp_column)
        return pa.schema([field for field in schema if field.name not in own])

    def _decode(self, values: Sequence[bytes | None], schema: pa.Schema) -> Decoded:
        if self.form == "raw":
            return _raw(values, schema)
        found = decode([value or b"" for value in values], self.form, schema)
        if len(found.records) + len(found.bad) == len(values):
            return found
        # In a file a blank line is nothing; a broker's record without a value is somebody's error.
        blank = [number for number, value in enumerate(values) if not (value or b"").strip()]
        bad = sorted([*found.bad, *((number, "its value is empty") for number in blank)])
        return Decoded(found.rows, found.records, bad)


def start_and_lost(options: Mapping[str, Any]) -> tuple[str, str]:
    """Where a stream is begun, and what is done when records were removed before being read."""
    chosen = []
    for name, allowed in (("start", STARTS), ("lost", LOST)):
        chosen.append(options.get(name, allowed[0]))
        if chosen[-1] not in allowed:
            raise InvalidInput(f"{name} is {chosen[-1]!r}; allowed: {', '.join(allowed)}.")
    return chosen[0], chosen[1]


def _raw(values: Sequence[bytes | None], schema: pa.Schema) -> Decoded:
    """The values as they are, in the one column that is left."""
    numbers = np.arange(len(values))
    bad: list[tuple[int, str]] = []
    column = pa.array(values, pa.binary())
    if schema.field(0).type == pa.string():
        try:
            column = column.cast(pa.string())
        except pa.ArrowInvalid:
            bad = [(n, "not UTF-8") for n, value in enumerate(values) if not _is_text(value)]
            numbers = np.setdiff1d(numbers, [number for number, _ in bad])
            column = column.take(numbers).cast(pa.string())
    return Decoded(pa.RecordBatch.from_arrays([column], schema=schema), numbers, bad)


def _is_text(value: bytes | None) -> bool:
    try:
        (value or b"").decode()
    except UnicodeDecodeError:
        return False
    return True
