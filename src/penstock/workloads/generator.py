"""Rows made on demand: a pure function of the seed and the row's number.

Any range of rows can be produced again at any time and anywhere, which is what makes a generated
stream replayable. Random numbers therefore come from hashing the row's number (splitmix64), not
from a sequence that would have to be replayed from its start.
"""

import json
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from penstock.errors import InvalidInput
from penstock.workloads.profiles import RateProfile

MOST_KEYS = 10_000_000
SCHEMA = pa.schema(
    [
        ("row", pa.int64()),
        ("key", pa.int64()),
        ("value", pa.float64()),
        ("at", pa.timestamp("us", "UTC")),
    ]
)


@dataclass(frozen=True)
class Generator:
    """A stream of (row, key, value, at).

    `key` is in [0, keys), key 0 the most frequent, with frequencies in proportion to
    1 / rank ** skew; `value` is uniform in [0, 1); `at` is when the row arrives. The stream ends
    after `rows` rows, or never. `lanes` is how many tasks read it; `max_rows` bounds one batch.
    """

    rate: RateProfile
    keys: int = 1_000
    skew: float = 0.0
    seed: int = 0
    rows: int | None = None
    lanes: int = 2
    max_rows: int | None = None

    def __post_init__(self) -> None:
        for field, value, least, most in (
            ("keys", self.keys, 1, MOST_KEYS),
            ("skew", self.skew, 0, 10),
            ("seed", self.seed, 0, 2**63 - 1),
            ("rows", self.rows, 0, 2**62),
            ("lanes", self.lanes, 1, 10_000),
            ("max_rows", self.max_rows, 1, 2**62),
        ):
            if value is not None and not least <= value <= most:
                raise InvalidInput(
                    f"Generator({field}) is {value!r}; it must be from {least} to {most}."
                )

    def available(self, elapsed_s: float) -> int:
        """How many rows have arrived this long after the stream began."""
        arrived = int(self.rate.rows_by(elapsed_s))
        return arrived if self.rows is None else min(arrived, self.rows)

    def batch(self, start: int, end: int, epoch_s: float) -> pa.RecordBatch:
        """The rows numbered from `start` up to but without `end`, of a stream begun at `epoch_s`.

        >>> from penstock.workloads.profiles import constant
        >>> stream = Generator(constant(10.0), keys=5, seed=7)
        >>> stream.batch(3, 6, 0.0).equals(stream.batch(0, 9, 0.0).slice(3, 3))
        True
        """
        row = np.arange(start, end, dtype=np.int64)
        at_us = (epoch_s + self.rate.arrival_s(row)) * 1e6
        columns = [
            pa.array(row),
            pa.array(self._keys(row)),
            pa.array(uniform(row, 2 * self.seed + 1)),
            pa.array(at_us.astype(np.int64)).cast(SCHEMA.field("at").type),
        ]
        return pa.RecordBatch.from_arrays(columns, schema=SCHEMA)

    def to_json(self) -> str:
        """JSON text that `from_json` reads back to an equal generator."""
        document = {name: getattr(self, name) for name in self.__dataclass_fields__}
        document["rate"] = json.loads(self.rate.to_json())
        return json.dumps(document, sort_keys=True)

    @classmethod
    def from_json(cls, text: str) -> "Generator":
        """The generator of a text made by `to_json`."""
        document: dict[str, Any] = json.loads(text)
        document["rate"] = RateProfile.from_json(json.dumps(document["rate"]))
        return cls(**document)

    @cached_property
    def _cumulative(self) -> NDArray[np.float64]:
        weights = np.arange(1, self.keys + 1, dtype=np.float64) ** -self.skew
        total = np.cumsum(weights)
        return np.asarray(total / total[-1])

    def _keys(self, row: NDArray[np.int64]) -> NDArray[np.int64]:
        return self.ranked(uniform(row, 2 * self.seed))

    def ranked(self, drawn: NDArray[np.float64]) -> NDArray[np.int64]:
        """The keys that uniform numbers in [0, 1) stand for."""
        if self.skew == 0:
            return (drawn * self.keys).astype(np.int64)
        return np.searchsorted(self._cumulative, drawn, side="right").astype(np.int64)


def uniform(row: NDArray[np.int64], stream: int) -> NDArray[np.float64]:
    """Uniform numbers in [0, 1), one per row, of one random sequence."""
    return uniform_of(row, np.uint64((stream * 0xD1B54A32D192ED03) % 2**64))


def uniform_of(row: NDArray[np.int64], salt: np.uint64 | NDArray[np.uint64]) -> NDArray[np.float64]:
    """Uniform numbers in [0, 1), one per row, from splitmix64 of the row's number and a salt."""
    with np.errstate(over="ignore"):
        z = row.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        z += salt
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        z ^= z >> np.uint64(31)
    return (z >> np.uint64(11)).astype(np.float64) * 2.0**-53
