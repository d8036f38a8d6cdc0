"""The one interface between the `penstock` source and the systems that hold streams.

It is public, as `penstock.sources`: docs/your-own-source.md shows how to write one, and
`penstock.testing.BackendContract` tests whether it keeps what is asked for here.

A backend is made from options alone and used in two places that share nothing else:

- in the source's runner (one process, child of the driver): `discover`, `first`, `latest` and
  `advance`, each called for all streams at once and, but for `discover`, once a batch. They must
  return soon: what is wrong with one stream is data (`Latest.fault`), what is wrong with all of
  them is `Unavailable`, which the source waits out with back-off. They change nothing: a range that
  was never committed may be asked for again.
- on executors: `read`, the rows of some ranges. The same ranges must give the same rows in the
  same order, whoever asks and when. A range that cannot be had just now is retried by the backend
  for a while and then raises; the task is then retried by Spark.

A position is two whole numbers, so that it can hold what the system itself counts with: (0, row)
of a generator, (0, offset) of a Kafka partition, (ms, seq) of a Redis stream id, (inode, byte) of a
file. The source never compares positions: a backend says how many rows lie behind one.
"""

import json
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from penstock.model.observation import Floats, Ints

Bools = NDArray[np.bool_]


@dataclass(frozen=True)
class Positions:
    """Places in streams, one a stream: the first record that has not been read."""

    major: Ints
    minor: Ints

    def __post_init__(self) -> None:
        if len(self.major) != len(self.minor):
            raise ValueError("both columns of Positions must be of one length")

    def __len__(self) -> int:
        return len(self.major)

    def take(self, rows: NDArray[Any]) -> "Positions":
        """The positions of some streams, by row numbers or by a mask."""
        return Positions(self.major[rows], self.minor[rows])

    def put(self, rows: NDArray[Any], other: "Positions") -> "Positions":
        """A copy in which some streams are at other places."""
        major, minor = self.major.copy(), self.minor.copy()
        major[rows], minor[rows] = other.major, other.minor
        return Positions(major, minor)

    def same(self, other: "Positions") -> Bools:
        """Where both are equal."""
        equal: Bools = (self.major == other.major) & (self.minor == other.minor)
        return equal


def positions(minor: Sequence[int] | Ints) -> Positions:
    """Positions of a system that counts with one number."""
    column = np.asarray(minor, dtype=np.int64)
    return Positions(np.zeros(len(column), dtype=np.int64), column)


@dataclass(frozen=True)
class Discovered:
    """A stream that the backend has found, with what it declares of itself.

    `meta` holds any of `penstock.forecast.metadata.NAMES`; most backends know nothing.
    """

    name: str
    meta: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Latest:
    """How far streams reach at this moment; one row for each stream asked for.

    `waiting_rows` counts from where reading stands to `end`, exactly or as well as can be known
    without reading it all. A stream with a fault has none waiting and `end` is ignored.
    """

    end: Positions
    waiting_rows: Ints
    first_s: Floats  # when the oldest waiting record arrived, seconds since 1970; NaN: not known
    last_s: Floats  # when the newest did
    # Why a stream cannot be read on for now, "" when it is sound: it vanished, shrank, went back
    # in time, or its broker is away. One short clause without the stream's name.
    fault: Sequence[str]
    ended: Bools  # nothing will ever come after `end`: a bounded stream, or one that was closed

    @classmethod
    def of(cls, end: Positions, waiting_rows: Ints, fault: Sequence[str] | None = None) -> "Latest":
        """Streams without end, of a system that does not know when a record arrived."""
        count = len(end)
        return cls(
            end, waiting_rows, np.full(count, np.nan), np.full(count, np.nan),
            [""] * count if fault is None else fault, np.zeros(count, dtype=bool),
        )  # fmt: skip


@dataclass(frozen=True)
class Advance:
    """Where ranges end that hold about so many rows, always at the end of a whole record."""

    end: Positions
    rows: Ints  # in each range, counted as `Latest.waiting_rows` is; 0: an empty range
    first_s: Floats  # arrival of the first and the last record of each range; NaN: not known
    last_s: Floats

    @classmethod
    def of(cls, end: Positions, rows: Ints) -> "Advance":
        """Of a system that does not know when a record arrived."""
        return cls(end, rows, np.full(len(end), np.nan), np.full(len(end), np.nan))


@dataclass(frozen=True)
class Ranges:
    """What one lane reads of its streams, each from `start` to before `end`."""

    streams: Sequence[str]
    start: Positions
    end: Positions
    rows: Ints  # as given by `advance`: a hint for the sizes of buffers

    def __len__(self) -> int:
        return len(self.streams)


@dataclass(frozen=True)
class Malformed:
    """A record that could not be understood."""

    stream: str
    offset: str  # as a person would look it up: a byte, a Redis id, a Kafka offset
    reason: str
    raw: bytes


@dataclass(frozen=True)
class Chunk:
    """Some rows, in the order of each stream: `counts[i]` of them come from range `ranges[i]`.

    Chunks are handed over one after another, so a stream's rows in a later chunk come later.
    """

    rows: pa.RecordBatch  # of the schema that was asked for
    ranges: Ints  # row numbers in the Ranges that were asked for
    counts: Ints
    malformed: Sequence[Malformed] = ()


class Backend(ABC):
    """Streams of one system. Subclasses are made by `from_options` in every process anew."""

    @classmethod
    @abstractmethod
    def from_options(cls, options: Mapping[str, Any]) -> "Backend":
        """Made from the JSON object that describes it (`penstock.model.sources`).

        What is wrong with the options is InvalidInput; a system that is away is not noticed here.
        """

    @classmethod
    def schema(cls, options: Mapping[str, Any]) -> str | None:
        """Columns as Spark DDL when the user declares none; None: they must be declared."""
        return None

    @classmethod
    def identity(cls, options: Mapping[str, Any]) -> str:
        """What must stay as it is for positions to mean the same, in a text that may be shown.

        All options, unless a backend says which of them do not matter; as a digest, since there
        may be a password among them.
        """
        text = json.dumps(options, sort_keys=True)
        return sha256(text.encode()).hexdigest()[:16]

    def check(self, schema: pa.Schema) -> None:  # noqa: B027 - most can read any
        """Refuse a schema that rows can never have, before anything starts (InvalidInput)."""

    @abstractmethod
    def discover(self) -> Sequence[Discovered]:
        """The streams there are now, in a stable order; called every discovery period."""

    def nothing_there(self) -> str | None:
        """Why there is no stream to read yet, in one clause; None where there is one.

        Asked once, by the driver, before a run starts: a place may be misspelt.
        """
        return None if self.discover() else "there is no stream yet"

    def first(self, streams: Sequence[str]) -> Positions:
        """Where reading begins in streams that were never read; also of streams not there yet.

        (0, 0) unless a backend says otherwise.
        """
        return positions([0] * len(streams))

    @abstractmethod
    def latest(self, streams: Sequence[str], since: Positions, whole: bool = False) -> Latest:
        """How far streams reach that have been read up to `since`.

        With `whole`, a bounded stream reaches to its end at once (a run over what is there).
        """

    def advance(
        self, streams: Sequence[str], start: Positions, latest: Positions, rows: Ints
    ) -> Advance:
        """Ranges from `start` of about `rows` rows, each at least one and none beyond `latest`.

        At least one record where there is one, however long, so that every stream moves on. Where
        `rows` is all that was waiting, the range ends at `latest`. As given here it is for systems
        that number records one by one: positions are (0, number).
        """
        end = np.minimum(start.minor + rows, latest.minor)
        return Advance.of(positions(end), end - start.minor)

    def fingerprints(self, streams: Sequence[str], upto: Positions) -> Ints | None:
        """A number for each stream that is another if what is before a position is; -1: none.

        None, unless a stream's name and positions may come to mean something else, as of a file
        that is deleted and made again. They are kept with the positions, for `recall`.
        """
        return None

    def recall(  # noqa: B027 - most need not
        self, streams: Sequence[str], upto: Positions, fingerprints: Ints
    ) -> None:
        """What `fingerprints` said of how far streams were read, before a restart."""

    @abstractmethod
    def read(self, ranges: Ranges, schema: pa.Schema) -> Iterator[Chunk]:
        """The rows of ranges, on an executor; chunks of some 10,000 to 100,000 rows.

        What cannot be read as a row of the schema is in `Chunk.malformed` and nowhere else.
        """

    def committed(self, streams: Sequence[str], upto: Positions) -> None:  # noqa: B027 - most need
        """Results of all records before these positions are out; called once a batch.

        For systems that show how far their readers are. What is told here is never read again:
        Penstock goes on from its own log.
        """

    def close(self) -> None:  # noqa: B027 - most have nothing to close
        """Let go of connections and files."""
