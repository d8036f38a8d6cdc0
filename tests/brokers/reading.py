"""A source in miniature: admits ranges of a backend by hand and keeps what it read."""

from collections import defaultdict
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.spark.sources.backends.backend import Backend, Latest, Malformed, Positions, Ranges


def read_all(
    backend: Backend, ranges: Ranges, schema: pa.Schema
) -> tuple[dict[str, list[dict[str, Any]]], list[Malformed]]:
    """The rows of ranges by stream, and the letters."""
    rows: dict[str, list[dict[str, Any]]] = defaultdict(list)
    letters: list[Malformed] = []
    for chunk in backend.read(ranges, schema):
        assert chunk.rows.schema == schema
        names = np.repeat([ranges.streams[row] for row in chunk.ranges], chunk.counts)
        for name, row in zip(names.tolist(), chunk.rows.to_pylist(), strict=True):
            rows[name].append(row)
        letters += chunk.malformed
    return rows, letters


class Reader:
    """Streams as discovered at each step, read on from where each stands."""

    def __init__(self, backend: Backend, schema: pa.Schema) -> None:
        self._backend, self._schema = backend, schema
        self._at: dict[str, tuple[int, int]] = {}
        self._admitted: Ranges | None = None
        self.seqs: dict[str, list[int]] = defaultdict(list)
        self.malformed: list[Malformed] = []
        self.names: list[str] = []

    def look(self) -> Latest:
        """How far all known streams reach."""
        return self._backend.latest(self.names, self._positions())

    def take(self, rows: dict[str, int]) -> None:
        """About so many rows of some streams."""
        self.admit(rows)
        self.read_on()

    def step(self, rng: np.random.Generator) -> None:
        """A few rows of each stream, or all that wait."""
        self._join()
        wanted = {name: int(rng.integers(1, 8)) for name in self.names}
        self.take(wanted)

    def drain(self) -> None:
        """All that waits."""
        self._join()
        self.take(dict.fromkeys(self.names, 2**40))

    def read_on(self) -> None:
        """The ranges admitted last; the next ones are admitted behind them."""
        if self._admitted is None:
            return
        rows, letters = read_all(self._backend, self._admitted, self._schema)
        for name, found in rows.items():
            self.seqs[name] += [row["seq"] for row in found]
        self.malformed += letters
        self._admitted = None

    def _join(self) -> None:
        new = [s.name for s in self._backend.discover() if s.name not in self._at]
        first = self._backend.first(new)
        self._at |= dict(
            zip(new, zip(first.major.tolist(), first.minor.tolist(), strict=True), strict=True)
        )
        self.names += new

    def _positions(self) -> Positions:
        places = [self._at[name] for name in self.names]
        return Positions(
            np.array([major for major, _ in places], dtype=np.int64),
            np.array([minor for _, minor in places], dtype=np.int64),
        )

    def admit(self, rows: dict[str, int]) -> None:
        """Ranges of about so many rows, to be read by `read_on`."""
        self._join()
        latest = self.look()
        wanted = np.array([rows.get(name, 0) for name in self.names], dtype=np.int64)
        share = np.minimum(wanted, latest.waiting_rows)
        some = np.flatnonzero(share)
        names = [self.names[row] for row in some.tolist()]
        start = self._positions().take(some)
        advance = self._backend.advance(names, start, latest.end.take(some), share[some])
        assert (advance.rows <= share[some]).all()
        for name, major, minor in zip(
            names, advance.end.major.tolist(), advance.end.minor.tolist(), strict=True
        ):
            self._at[name] = (major, minor)
        self._admitted = Ranges(names, start, advance.end, advance.rows)
