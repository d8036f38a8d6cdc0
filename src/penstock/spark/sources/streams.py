"""All streams that a source knows, as columns; a stream's number is its place in them.

Numbers hold until streams that left long ago are forgotten, which only happens where the log begins
a new segment: its snapshot has the new numbers, and the entries behind it use them.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from penstock.model.observation import Floats, Ints
from penstock.spark.sources.backends.backend import Bools, Positions
from penstock.spark.sources.entry import Batch, Joined, Snapshot

LIVE, LEAVING, GONE = 0, 1, 2
STATES = ("live", "leaving", "gone")
NO_LANE = -1
_COLUMNS = ("lane", "state", "joined_s", "gone_s", "waiting", "taken", "remaining", "fingerprint")


class StreamTable:
    """Where reading stands in each stream, and what is known of it."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self.number: dict[str, int] = {}
        nothing: Ints = np.empty(0, dtype=np.int64)
        self.position = Positions(nothing, nothing)
        self.lane: Ints = nothing
        self.state: Ints = nothing
        self.fingerprint: Ints = nothing  # of what is before the position; -1: not known
        self.joined_s: Floats = np.empty(0)
        self.gone_s: Floats = np.empty(0)  # when it left; NaN while it is here
        self.waiting: Ints = nothing
        self.taken: Ints = nothing  # rows admitted since this runner began
        self.final = Positions(nothing, nothing)  # of a leaving stream: where it ends
        self.remaining: Ints = nothing  # of a leaving stream: rows until there; -1: not known yet
        self.fault: dict[int, str] = {}
        self.logged = 0  # streams that the log knows
        self.taken_of_forgotten = 0  # rows admitted since this runner began

    def __len__(self) -> int:
        return len(self.names)

    def join(self, names: Sequence[str], start: Positions, at_s: Floats) -> Ints:
        """Add streams that were never known; returns their numbers."""
        first, count = len(self.names), len(names)
        self.number.update({name: first + place for place, name in enumerate(names)})
        self.names.extend(names)
        zeros = np.zeros(count, dtype=np.int64)
        self.position = _joined(self.position, start)
        self.final = _joined(self.final, start)
        self.joined_s = np.concatenate([self.joined_s, at_s])
        self.gone_s = np.concatenate([self.gone_s, np.full(count, np.nan)])
        self.lane = np.concatenate([self.lane, zeros + NO_LANE])
        self.remaining = np.concatenate([self.remaining, zeros - 1])
        self.fingerprint = np.concatenate([self.fingerprint, zeros - 1])
        for column in ("state", "waiting", "taken"):
            setattr(self, column, np.concatenate([getattr(self, column), zeros]))
        return np.arange(first, first + count)

    def restore(self, entry: Batch | Snapshot) -> None:
        """Go through an entry of the log again."""
        if isinstance(entry, Snapshot):
            self.join(entry.names, entry.position, entry.joined_s)
            self.lane = entry.lane.copy()
            self.gone_s = entry.gone_s.copy()
            if entry.fingerprint is not None:
                self.fingerprint = entry.fingerprint.copy()
            self.state = np.where(np.isnan(entry.gone_s), LIVE, GONE)
        else:
            new = entry.joined
            self.join(new.names, new.start, new.at_s)
            self.moved(entry)
            self.lane[entry.stream] = entry.lane
        self.logged = len(self.names)

    def moved(self, batch: Batch) -> None:
        """The ranges of a batch are admitted."""
        self.position = self.position.put(batch.stream, batch.end)
        self.fingerprint[batch.stream] = -1 if batch.fingerprint is None else batch.fingerprint

    def new_to_log(self) -> Joined:
        """Streams that no entry mentions yet."""
        rows = np.arange(self.logged, len(self.names))
        return Joined(self.names[self.logged :], self.position.take(rows), self.joined_s[rows])

    def snapshot(self, seq: int) -> Snapshot:
        """All of it, for the log."""
        return Snapshot(
            seq, list(self.names), self.position, self.lane, self.joined_s, self.gone_s,
            self.fingerprint if (self.fingerprint >= 0).any() else None,
        )  # fmt: skip

    def forget(self, kept: Bools) -> Ints:
        """Keep these streams only; the new number of each, or -1 for one that is forgotten."""
        rows = np.flatnonzero(kept)
        number = np.full(len(kept), -1, dtype=np.int64)
        number[rows] = np.arange(len(rows))
        self.taken_of_forgotten += int(self.taken[~kept].sum())
        self.names = [self.names[row] for row in rows.tolist()]
        self.number = {name: place for place, name in enumerate(self.names)}
        self.position, self.final = self.position.take(rows), self.final.take(rows)
        for column in _COLUMNS:
            setattr(self, column, getattr(self, column)[rows])
        self.fault = {int(number[row]): said for row, said in self.fault.items() if kept[row]}
        self.logged = int(kept[: self.logged].sum())
        return number

    def left_before(self, moment_s: float) -> Bools:
        """Streams that are gone since before a moment."""
        with np.errstate(invalid="ignore"):
            found: Bools = (self.state == GONE) & (self.gone_s < moment_s)
        return found

    def present(self) -> Ints:
        """Numbers of the streams that are read."""
        return np.flatnonzero(self.state != GONE)

    @property
    def suspended(self) -> Bools:
        """Streams with a fault, of all."""
        found = np.zeros(len(self.names), dtype=bool)
        found[list(self.fault)] = True
        return found

    def follow(self, wanted: Mapping[str, Any], now_s: float, first: Any) -> bool:
        """Let streams join and leave until those wanted are here; True if any did."""
        new = [name for name in wanted if name not in self.number]
        if new:
            self.join(new, first(new), np.full(len(new), now_s))
        is_wanted = np.zeros(len(self.names), dtype=bool)
        number = self.number
        is_wanted[[number[name] for name in wanted]] = True
        back = np.flatnonzero(is_wanted & (self.state != LIVE))
        left = np.flatnonzero(~is_wanted & (self.state == LIVE))
        self.state[back] = LIVE
        self.gone_s[back] = np.nan
        self.state[left] = LEAVING
        self.remaining[left] = -1
        return bool(len(new) or len(back) or len(left))

    def leave(self, rows: Ints, now_s: float) -> None:
        """Everything these streams had is admitted."""
        self.state[rows] = GONE
        self.gone_s[rows] = now_s
        self.lane[rows] = NO_LANE
        self.waiting[rows] = 0
        for row in rows.tolist():
            self.fault.pop(row, None)


def _joined(one: Positions, other: Positions) -> Positions:
    return Positions(
        np.concatenate([one.major, other.major]), np.concatenate([one.minor, other.minor])
    )
