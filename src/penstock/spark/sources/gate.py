"""The gate of a source: each batch it says which rows of which streams enter, and by which lane.

One gate lives in the source's runner. Its memory is the admission log; everything else (rates,
queues, faults) is learnt again after a restart.
"""

import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from penstock.errors import Unavailable
from penstock.forecast.metadata import StreamMetadata, metadata_from
from penstock.model.observation import Floats, Ints
from penstock.spark.checkpoint.advisory_files import AdvisoryFiles
from penstock.spark.sources.arrivals import grouped
from penstock.spark.sources.backends.backend import Backend, Latest, Positions
from penstock.spark.sources.dead_letters import (
    count_letters,
    forget_letters,
    letter_file,
    letter_files,
    read_gone,
)
from penstock.spark.sources.entry import Batch
from penstock.spark.sources.fair import fair_shares
from penstock.spark.sources.log import AdmissionLog
from penstock.spark.sources.membership import Membership
from penstock.spark.sources.planner import LanePlanner
from penstock.spark.sources.settings import SourceSettings
from penstock.spark.sources.status import summary, write_status, write_streams
from penstock.spark.sources.stream_meta import in_periods
from penstock.spark.sources.stream_poller import StreamPoller
from penstock.spark.sources.streams import GONE, LEAVING, StreamTable

log = logging.getLogger(__name__)

FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.5, 15.0  # between two attempts at a backend that is away
STATUS_PERIOD_S = 0.5  # while nothing is admitted
FORGET_PERIOD_S = 60.0  # between two looks at the dead letters


@dataclass(frozen=True)
class Admitted:
    """A batch, and when its rows arrived."""

    batch: Batch
    arrived: list[list[float]]


class Gate:
    """Decides batch by batch; `log` is open at the entry Spark goes on from."""

    def __init__(
        self, settings: SourceSettings, backend: Backend, log: AdmissionLog, number: int, seq: int
    ) -> None:
        self._settings = settings
        self._backend = backend
        self._log = log
        self._log_number = number
        self._table = StreamTable()
        for entry in log.open(self._table.snapshot(0), seq):
            self._table.restore(entry)
        known = np.flatnonzero(self._table.fingerprint >= 0)
        backend.recall(
            [self._table.names[row] for row in known.tolist()],
            self._table.position.take(known), self._table.fingerprint[known],
        )  # fmt: skip
        self.seq = seq
        self._advisory = AdvisoryFiles(f"source {settings.source}")
        self._membership = Membership(settings, backend)
        self._began_s = time.time()
        self._planner = LanePlanner(settings.limits, time.monotonic())
        self._poller = StreamPoller(self._table, backend)
        self._metadata: StreamMetadata = metadata_from([])
        self._metadata_of: Ints = np.empty(0, dtype=np.int64)  # streams it has rows for
        self._metadata_period_s = np.nan  # in which it counts
        self._failure = ""  # of the last decision
        # What is waited for is counted by the clock that is never set.
        self._retry_s, self._pause_s, self._away = -np.inf, FIRST_PAUSE_S, ""
        self._status_s = -np.inf
        self._batch_rows = 0
        self._malformed = self._malformed_before()
        self._expires_s = np.inf
        self._forget_s = -np.inf
        self._untold = False  # positions, to the system that holds the streams
        self._behind = False  # what is wanted has changed and could not be followed yet

    @property
    def once(self) -> bool:
        """Whether only what is there now is admitted, and nothing that comes later."""
        return self._poller.once

    @once.setter
    def once(self, value: bool) -> None:
        self._poller.once = value

    @property
    def names(self) -> Sequence[str]:
        """Names of streams by their number in the log."""
        return self._table.names

    @property
    def waiting_rows(self) -> int:
        """Rows at the streams that are not admitted, as last seen."""
        return int(self._table.waiting[self._table.present()].sum())

    def admit(self, most_rows: int | None, everything: bool) -> Admitted | None:
        """The next batch, in the log already; None when there is nothing to read."""
        now_s, steady_s = time.time(), time.monotonic()
        if steady_s < self._retry_s:
            return None
        if self._log.full:
            self._begin_segment(now_s)
        try:
            self._follow(now_s, steady_s)
            rows = self._table.present()
            latest = self._poller.poll(rows, now_s, self._membership.control.resumed)
            self._pause_s, self._away = FIRST_PAUSE_S, ""
        except Unavailable as reason:
            self._wait_for_backend(str(reason), now_s)
            return None
        self._planner.queues.sample(self._table.lane[rows], self._table.waiting[rows])
        self._plan(rows, now_s, steady_s)
        shares = self._shares(rows, most_rows, everything)
        try:
            made = self._batch(rows, shares, latest)
        except Unavailable as reason:
            self._wait_for_backend(str(reason), now_s)
            return None
        if made is not None:
            self._planner.queues.took_batch(made.batch.lane, made.batch.rows, steady_s)
        if made is not None or steady_s - self._status_s > STATUS_PERIOD_S:
            self._write_status(now_s)
        return made

    def committed(self, seq: int) -> None:
        """Spark will not ask for anything up to here again."""
        folder = Path(self._settings.dead_letters)
        for known, batch in self._log.recent.items():
            if known <= seq:
                for lane in np.unique(batch.lane).tolist():
                    self._malformed += count_letters(
                        letter_file(folder, self._log_number, known, lane)
                    )
        self._forget_letters(seq)
        self._tell_positions(seq)
        with self._advisory.attempt("removing the log's old segments"):
            self._log.committed(seq)

    def _forget_letters(self, seq: int) -> None:
        if time.monotonic() < self._forget_s:
            return
        self._forget_s = time.monotonic() + FORGET_PERIOD_S
        oldest_s, most = time.time() - self._settings.letters_age_s, self._settings.letters_bytes
        with self._advisory.attempt("removing old dead letters"):
            folder = Path(self._settings.dead_letters)
            forget_letters(folder, self._log_number, seq, oldest_s, most)

    def _tell_positions(self, seq: int) -> None:
        """Show the system how far its streams are read; nobody but lookers-on depends on it."""
        done = [self._log.recent[known] for known in sorted(self._log.recent) if known <= seq]
        if not done:
            return
        # Of a stream that is in several batches the last position counts.
        stream = np.concatenate([batch.stream for batch in done])[::-1]
        numbers, last = np.unique(stream, return_index=True)
        upto = Positions(
            np.concatenate([batch.end.major for batch in done])[::-1][last],
            np.concatenate([batch.end.minor for batch in done])[::-1][last],
        )
        try:
            self._backend.committed([self.names[number] for number in numbers.tolist()], upto)
        except Exception as error:  # noqa: BLE001 - also of a user's class; the query goes on
            if not self._untold:
                log.warning("source %s: positions are not told: %s", self._settings.source, error)
            self._untold = True
        else:
            self._untold = False

    def _malformed_before(self) -> int:
        """Dead letters of batches that the log no longer holds."""
        folder, later = Path(self._settings.dead_letters), self._log.recent
        gone = read_gone(folder, self._log_number)
        files = letter_files(folder, self._log_number)
        return gone.records + sum(
            count_letters(file)
            for seq, file in files
            if gone.upto < seq <= self.seq and seq not in later
        )

    def _follow(self, now_s: float, steady_s: float) -> None:
        """Streams join and leave."""
        table, membership = self._table, self._membership
        if self._poller.frozen:
            return
        changed = membership.refresh(steady_s) or self._behind
        self._planner.limits = membership.control.applied(
            self._settings.limits, self._settings.learns_capacity
        )
        if not changed and now_s < self._expires_s:
            return
        self._behind = True  # until done: where streams begin cannot be asked of one that is away
        wanted = membership.wanted
        lifetimes = {
            name: float(meta["lifetime"]) for name, meta in wanted.items() if "lifetime" in meta
        }
        number = table.number
        ends = {
            name: (table.joined_s[number[name]] if name in number else now_s) + lifetime_s
            for name, lifetime_s in lifetimes.items()
        }
        over = {name for name, end_s in ends.items() if end_s <= now_s}
        self._expires_s = min((e for e in ends.values() if e > now_s), default=np.inf)
        table.follow({n: m for n, m in wanted.items() if n not in over}, now_s, self._backend.first)
        self._metadata_of = np.empty(0, dtype=np.int64)
        self._behind = False

    def _plan(self, rows: Ints, now_s: float, steady_s: float) -> None:
        """Lanes for the streams that are read; a decision that fails changes nothing."""
        table = self._table
        read = rows[(table.state[rows] != GONE) & ~table.suspended[rows]]
        if len(read) == 0:
            return
        try:
            decided = self._planner.place(table, read, self._known(read), now_s, steady_s)
            self._failure = "" if decided else self._failure
        except Exception as error:  # noqa: BLE001 - whatever it is, rows must flow
            self._failure = f"lanes are not decided anew: {error}"
            log.warning("source %s: %s", self._settings.source, self._failure)
            self._planner.keep(table, read)
            return
        if decided:
            with self._advisory.attempt("its table of streams"):
                write_streams(self._log.directory, table, self._planner)

    def _known(self, read: Ints) -> StreamMetadata:
        """What is known of the streams that are read."""
        period_s = self._planner.limits.period_s
        if period_s != self._metadata_period_s or not np.array_equal(read, self._metadata_of):
            wanted, names = self._membership.wanted, self._table.names
            metas = [wanted.get(names[row], {}) for row in read.tolist()]
            self._metadata = in_periods(metas, self._table.joined_s[read], period_s)
            self._metadata_of, self._metadata_period_s = read, period_s
        return self._metadata

    def _shares(self, rows: Ints, most_rows: int | None, everything: bool) -> Ints:
        """Rows for each stream in this batch."""
        table, limits = self._table, self._planner.limits
        waiting = np.where(table.suspended[rows], 0, table.waiting[rows])
        if everything:
            return waiting
        lane = np.maximum(table.lane[rows], 0)
        shares = fair_shares(waiting, lane, limits.lane_rows, self.seq)
        bounds = [bound for bound in (most_rows, limits.max_rows) if bound is not None]
        if bounds:
            shares = fair_shares(shares, np.zeros_like(lane), min(bounds), self.seq)
        return shares

    def _batch(self, rows: Ints, shares: Ints, latest: Latest) -> Admitted | None:
        """Write down what is admitted, and remember it."""
        table = self._table
        taken = np.flatnonzero(shares > 0)
        if len(taken) == 0:
            return None
        taken = taken[np.argsort(table.lane[rows[taken]], kind="stable")]
        streams, start = rows[taken], table.position.take(rows[taken])
        count = shares[taken].copy()
        end = latest.end.take(taken)
        first_s, last_s = latest.first_s[taken].copy(), latest.last_s[taken].copy()
        part = np.flatnonzero(count < table.waiting[streams])
        if len(part):
            names = [table.names[row] for row in streams[part].tolist()]
            advance = self._backend.advance(names, start.take(part), end.take(part), count[part])
            end = end.put(part, advance.end)
            count[part], first_s[part], last_s[part] = advance.rows, advance.first_s, advance.last_s
        moved = ~start.same(end)
        if not moved.any():
            return None
        names = [table.names[row] for row in streams[moved].tolist()]
        batch = Batch(
            self.seq + 1, streams[moved], table.lane[streams[moved]],
            start.take(moved), end.take(moved), count[moved], table.new_to_log(),
            self._backend.fingerprints(names, end.take(moved)),
        )  # fmt: skip
        self._log.append(batch)
        self._admitted(batch)
        arrived = self._arrivals(batch, first_s[moved], last_s[moved])
        return Admitted(batch, arrived)

    def _admitted(self, batch: Batch) -> None:
        table = self._table
        self.seq = batch.seq
        self._batch_rows = int(batch.rows.sum())
        table.moved(batch)
        table.logged = len(table)
        table.taken[batch.stream] += batch.rows
        table.waiting[batch.stream] = np.maximum(table.waiting[batch.stream] - batch.rows, 0)
        leaving = batch.stream[table.state[batch.stream] == LEAVING]
        if len(leaving):
            table.remaining[leaving] = np.maximum(
                table.remaining[leaving] - batch.rows[np.isin(batch.stream, leaving)], 0
            )
            done = table.position.take(leaving).same(table.final.take(leaving))
            # An estimate of rows may be used up before the stream is.
            table.remaining[leaving[~done]] = np.maximum(table.remaining[leaving[~done]], 1)
            table.leave(leaving[done], time.time())

    def _begin_segment(self, now_s: float) -> None:
        """A new one in the log, without streams that left long ago and no batch can ask for.

        One that comes back after that is a new stream.
        """
        left = self._table.left_before(now_s - self._settings.departed_age_s)
        for batch in self._log.recent.values():
            left[batch.stream] = False
        if left.any():
            self._log.renumber(self._table.forget(~left))
            self._planner.forget(~left)
            self._poller.sightings.forget(~left)
            self._metadata_of = np.empty(0, dtype=np.int64)
        self._log.roll(self._table.snapshot(self.seq))
        self._table.logged = len(self._table)

    def _arrivals(self, batch: Batch, first_s: Floats, last_s: Floats) -> list[list[float]]:
        seen_first, seen_last = self._poller.sightings.take(batch.stream, batch.rows)
        first = np.where(np.isnan(first_s), seen_first, first_s)
        last = np.where(np.isnan(last_s), seen_last, last_s)
        return grouped(batch.rows, first, last)

    def _wait_for_backend(self, reason: str, now_s: float) -> None:
        if not self._away:
            log.warning("source %s waits: %s", self._settings.source, reason)
        self._away = reason
        self._retry_s = time.monotonic() + self._pause_s
        self._pause_s = min(2 * self._pause_s, LONGEST_PAUSE_S)
        self._write_status(now_s)

    def _write_status(self, now_s: float) -> None:
        """The status, for whoever looks on; that it cannot be written must not end the query."""
        self._status_s = time.monotonic()
        notes = [f"{place}: {said}" for place, said in self._membership.notes.items()]
        notes += [self._failure] if self._failure else []
        if self._away:
            notes.append(f"waiting for the {self._settings.backend} backend: {self._away}")
        table = self._table
        if len(table) == 0:
            notes.append("no stream has come yet")
        # Streams may still join where none did, unless only what was there at first is read.
        some = len(table) > 0 or self._poller.frozen
        finished = self._poller.polled and some and bool((table.state == GONE).all())
        status = {
            "source": self._settings.source, "log": self._log_number, "seq": self.seq,
            "batch_rows": self._batch_rows, "at_s": now_s, "began_s": self._began_s,
            "malformed_rows": self._malformed,
            "finished": finished, "notes": notes, **summary(table, self._planner),
        }  # fmt: skip
        with self._advisory.attempt("its status"):
            write_status(self._log.directory, status)
