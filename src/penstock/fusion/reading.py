"""Whether the consumers of a source of files each read it again, or share it by an exchange.

To read again costs each consumer the columns that it uses. An exchange reads all columns that it
carries once, encodes and writes them, has every consumer fetch and decode all of them, and is one
more stage of each batch; behind an operator that makes few columns of them it carries those. Both
are priced for a batch of one file: its rows, their columns and bytes come from a sample, and what
these cost from measurements on Spark (`python -m benchmarks sharing_units`), which hold as ratios
on any machine whose files are as near as its shuffles. Times of a start are not measured: on a busy
machine they would decide by what else runs, and state is begun by the decision.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

UNKNOWN_ROWS = 100_000  # of a batch, while there is no file


@dataclass(frozen=True)
class Unit:
    """Seconds of a processor for a row, for each of its values, and for each byte of these."""

    row_s: float
    value_s: float
    byte_s: float

    def of(self, values: int, size_bytes: float) -> float:
        """For one row."""
        return self.row_s + self.value_s * values + self.byte_s * size_bytes


@dataclass(frozen=True)
class Format:
    """A format of files, and whether a reader of some columns does not touch the others."""

    name: str
    by_column: bool
    read: Unit


FORMATS = {
    "parquet": Format("Parquet", True, Unit(4e-9, 0.0, 1.3e-9)),
    "orc": Format("ORC", True, Unit(1.3e-8, 0.0, 1.1e-9)),
    "csv": Format("CSV", False, Unit(3.9e-7, 5e-8, 2.2e-9)),
    "json": Format("JSON", False, Unit(3.8e-7, 6.2e-8, 2.5e-9)),
}
WRITE = Unit(5.2e-8, 8.7e-9, 1.3e-9)  # into an exchange
FETCH = Unit(1.5e-7, 0.0, 4.4e-10)  # from it, for one consumer
STAGE_S = 0.13  # of each batch, that there is an exchange at all


@dataclass(frozen=True)
class Sample:
    """Bytes of each column in a row; of so many rows, or guessed from their types where of none."""

    format: str
    column_bytes: Mapping[str, float]
    rows: int = 0
    file_rows: int = UNKNOWN_ROWS

    def bytes_of(self, columns: Collection[str]) -> float:
        """In a row."""
        return sum(self.column_bytes[column] for column in columns)


@dataclass(frozen=True)
class Exchange:
    """Bytes of each column that goes through it, and how many fetch all of them."""

    column_bytes: Mapping[str, float]
    consumers: int

    def seconds(self, rows: int) -> float:
        """What it costs a batch of so many rows."""
        values, size_bytes = len(self.column_bytes), sum(self.column_bytes.values())
        once, each = WRITE.of(values, size_bytes), FETCH.of(values, size_bytes)
        return STAGE_S + rows * (once + self.consumers * each)


@dataclass(frozen=True)
class ReadingChoice:
    """How the rows of a source come to its consumers, and what either way costs a batch."""

    source: str
    again: bool
    again_s: tuple[float, ...]  # of each consumer
    shared_s: float
    used: tuple[int, ...]  # columns of each consumer
    carried: tuple[int, ...]  # columns of each exchange
    sample: Sample

    @property
    def what(self) -> str:
        """For a person.

        >>> sample = Sample("parquet", {"a": 8.0, "b": 8.0, "c": 40.0}, 50_000, 2_000_000)
        >>> ReadingChoice("bid", True, (0.1, 0.3), 2.0, (1, 2), (3,), sample).what
        '2 x 0.2 s to read the 1 to 2 columns each uses, 2 s to share all 3 columns by an exchange \
(of 2,000,000 rows, as a file has; measured on 50,000 rows of Parquet)'
        """
        count, mean_s = len(self.again_s), sum(self.again_s) / len(self.again_s)
        name, every = FORMATS[self.sample.format].name, len(self.sample.column_bytes)
        whole = "all " if set(self.carried) == {every} else ""
        by = "an exchange" if len(self.carried) == 1 else f"{len(self.carried)} exchanges"
        seen = f"as a file has; measured on {self.sample.rows:,} rows of {name}"
        if not self.sample.rows:
            seen = f"guessed from the types of its columns in {name}"
        return (
            f"{count} x {mean_s:.2g} s to read the {_columns(self.used)} each uses, "
            f"{self.shared_s:.2g} s to share {whole}{_columns(self.carried)} by {by} "
            f"(of {self.sample.file_rows:,} rows, {seen})"
        )


def choose_reading(
    source: str, used: Sequence[Sequence[str]], sample: Sample, exchanges: Sequence[Exchange]
) -> ReadingChoice:
    """The cheaper way for consumers that use these columns; of equal ones, to read again."""
    format_, rows = FORMATS[sample.format], sample.file_rows
    every = tuple(sample.column_bytes)

    def reading_s(columns: Collection[str]) -> float:
        touched = columns if format_.by_column else every
        return rows * format_.read.of(len(columns), sample.bytes_of(touched))

    again_s = tuple(reading_s(columns) for columns in used)
    through = {*chain(*used), *chain(*(exchange.column_bytes for exchange in exchanges))}
    once_s = reading_s([column for column in every if column in through])
    shared_s = once_s + sum(exchange.seconds(rows) for exchange in exchanges)
    counts = tuple(len(columns) for columns in used)
    carried = tuple(len(exchange.column_bytes) for exchange in exchanges)
    return ReadingChoice(
        source, sum(again_s) <= shared_s, again_s, shared_s, counts, carried, sample
    )


def _columns(counts: Sequence[int]) -> str:
    least, most = min(counts), max(counts)
    span = f"{least}" if least == most else f"{least} to {most}"
    return f"{span} column{'s' * (most != 1)}"
