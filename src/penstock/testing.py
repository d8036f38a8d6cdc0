"""Tests for what users write against Penstock: derive a class, fill in its hooks, run pytest."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from penstock.spark.sources.backends.backend import Backend, Latest, Positions, Ranges

STREAMS = ("one", "two")


class BackendContract:
    """What the `penstock` source relies on; every backend of its own passes these tests.

    The hooks below are given by a class derived from this one, whose name begins with Test. What
    pytest calls before each test (`setup_method`, fixtures) makes the system empty again.
    """

    streams: tuple[str, str] = STREAMS  # names of two streams, in the order they are discovered
    counts_exactly = True  # `waiting_rows` are exact; False: estimates, which may be wrong

    def make(self) -> Backend:
        """The backend, made anew by `from_options` with the same options each time."""
        raise NotImplementedError

    def append(self, stream: str, count: int) -> None:
        """Write so many records to a stream, numbered on from the last one, from 0."""
        raise NotImplementedError

    def schema(self) -> pa.Schema:
        """The columns to read."""
        raise NotImplementedError

    def numbers(self, rows: pa.RecordBatch) -> list[int]:
        """The numbers of the records that rows were read from."""
        raise NotImplementedError

    def test_streams_are_discovered_in_a_stable_order(self) -> None:
        """Their order decides over their numbers in the admission log."""
        self._fill(3, 2)
        first, again = self.make(), self.make()
        assert [stream.name for stream in first.discover()] == list(self.streams)
        assert [stream.name for stream in again.discover()] == list(self.streams)

    def test_a_system_without_streams_says_so(self) -> None:
        """Whoever starts a run is told, as its place may be misspelt."""
        empty = self.make()
        assert (empty.nothing_there() is None) == (len(empty.discover()) > 0)
        self._fill(1, 1)
        assert self.make().nothing_there() is None

    def test_all_records_are_read_in_order(self) -> None:
        """From where reading begins to where the streams reach."""
        self._fill(40, 7)
        backend = self.make()
        assert self._read(backend, *self._whole(backend)) == [list(range(40)), list(range(7))]

    def test_rows_that_wait_are_counted(self) -> None:
        """All of them at first, none once they are read."""
        self._fill(40, 7)
        backend = self.make()
        _, latest = self._whole(backend)
        assert list(latest.fault) == ["", ""]
        assert (latest.waiting_rows > 0).all()
        if self.counts_exactly:
            assert latest.waiting_rows.tolist() == [40, 7]
        after = backend.latest(self.streams, latest.end)
        assert after.waiting_rows.tolist() == [0, 0]
        assert after.end.same(latest.end).all()
        assert not np.isinf(latest.first_s).any()

    def test_asking_changes_nothing(self) -> None:
        """A range that was never committed is asked for again."""
        self._fill(9, 9)
        backend = self.make()
        start, latest = self._whole(backend)
        again = backend.latest(self.streams, start)
        assert again.end.same(latest.end).all()
        assert (again.waiting_rows == latest.waiting_rows).all()

    def test_a_range_gives_the_same_rows_whoever_reads_it_and_when(self) -> None:
        """A batch that is repeated after a crash reads what it read before."""
        self._fill(20, 5)
        backend = self.make()
        start, latest = self._whole(backend)
        before = self._read(backend, start, latest)
        self.append(self.streams[0], 30)
        self.append(self.streams[1], 1)
        assert self._read(backend, start, latest) == before
        assert self._read(self.make(), start, latest) == before

    def test_ranges_of_any_size_make_up_the_whole(self) -> None:
        """Each record once and in order, however a stream is cut."""
        self._fill(25, 10)
        backend = self.make()
        at, latest = self._whole(backend)
        found: list[list[int]] = [[], []]
        for rows in (1, 3, 2, 7, 1, 100, 100):
            left = backend.latest(self.streams, at)
            wanted = np.minimum(left.waiting_rows, rows)
            some = np.flatnonzero(wanted)
            if len(some) == 0:
                break
            names = [self.streams[place] for place in some.tolist()]
            cut = backend.advance(names, at.take(some), left.end.take(some), wanted[some])
            assert not cut.end.same(at.take(some)).any(), "every range holds a record"
            assert (cut.rows > 0).all()
            ranges = Ranges(names, at.take(some), cut.end, cut.rows)
            for place, numbers in zip(some.tolist(), self._rows(backend, ranges), strict=True):
                found[place] += numbers
            at = at.put(some, cut.end)
        assert found == [list(range(25)), list(range(10))]
        assert at.same(latest.end).all(), "all of it ends where the stream reaches to"

    def test_records_that_come_later_are_read_on(self) -> None:
        """From the position where reading stood."""
        self._fill(5, 5)
        backend = self.make()
        _, latest = self._whole(backend)
        self.append(self.streams[1], 4)
        backend = self.make()
        more = backend.latest(self.streams, latest.end)
        assert self._read(backend, latest.end, more) == [[], [5, 6, 7, 8]]

    def test_one_stream_without_records_holds_up_no_other(self) -> None:
        """What is wrong with a stream is a fault of that one, and no exception."""
        self._fill(4, 0)
        backend = self.make()
        names = [self.streams[0], "no such stream"]
        start = backend.first(names)
        latest = backend.latest(names, start)
        assert latest.fault[0] == ""
        assert latest.waiting_rows[0] > 0
        assert latest.waiting_rows[1] == 0

    def test_no_streams_are_no_rows(self) -> None:
        """Of a system that is empty, or whose streams have all been removed."""
        backend = self.make()
        start = backend.first([])
        assert len(backend.latest([], start).end) == 0
        assert self._rows(backend, Ranges([], start, start, np.empty(0, dtype=np.int64))) == []

    def _fill(self, *counts: int) -> None:
        for stream, count in zip(self.streams, counts, strict=True):
            if count:
                self.append(stream, count)

    def _whole(self, backend: Backend) -> tuple[Positions, Latest]:
        start = backend.first(self.streams)
        return start, backend.latest(self.streams, start)

    def _read(self, backend: Backend, start: Positions, latest: Latest) -> list[list[int]]:
        rows = latest.waiting_rows
        return self._rows(backend, Ranges(self.streams, start, latest.end, rows))

    def _rows(self, backend: Backend, ranges: Ranges) -> list[list[int]]:
        """The numbers of the records of each range."""
        found: list[list[int]] = [[] for _ in range(len(ranges))]
        for chunk in backend.read(ranges, self.schema()):
            assert chunk.rows.schema.names == self.schema().names
            assert not chunk.malformed
            assert int(chunk.counts.sum()) == chunk.rows.num_rows
            _divide(self.numbers(chunk.rows), chunk.ranges.tolist(), chunk.counts.tolist(), found)
        return found


def _divide(
    numbers: Sequence[int], places: Sequence[int], counts: Sequence[int], found: list[list[int]]
) -> None:
    at = 0
    for place, count in zip(places, counts, strict=True):
        found[place] += numbers[at : at + count]
        at += count
