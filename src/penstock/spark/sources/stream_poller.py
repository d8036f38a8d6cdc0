"""What the gate sees: how far streams reach, which are faulty, and where leaving ones end."""

import logging
from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from penstock.model.observation import Ints
from penstock.spark.sources.arrivals import Sightings
from penstock.spark.sources.backends.backend import Backend, Bools, Latest
from penstock.spark.sources.streams import LEAVING, StreamTable

log = logging.getLogger(__name__)

MOST_LINES = 5  # logged of one look; the rest is counted


class StreamPoller:
    """Looks at all streams at once, and keeps the table of streams up to date."""

    def __init__(self, table: StreamTable, backend: Backend) -> None:
        self._table = table
        self._backend = backend
        self.sightings = Sightings()
        self.once = False
        self.frozen = False  # nothing joins any more
        self.polled = False

    def poll(self, rows: Ints, now_s: float, resumed: Mapping[str, tuple[int, int]]) -> Latest:
        """How far streams reach; faults and leaving streams seen to."""
        table = self._table
        self._resume(resumed)
        names = [table.names[row] for row in rows.tolist()]
        latest = self._backend.latest(names, table.position.take(rows), whole=self.once)
        self._note_faults(rows, latest)
        sound = ~table.suspended[rows]
        if self.once and not self.frozen:
            # What is there now is all that this run reads: everything leaves, and nothing joins.
            table.state[rows] = LEAVING
            table.remaining[rows] = -1
            self.frozen = True
        if (table.state[rows] == LEAVING).any():
            latest = self._hold_leaving(rows, latest, sound, now_s)
        waiting = latest.waiting_rows
        # A stream that is suspended is remembered with what it had.
        table.waiting[rows] = np.where(sound, waiting, table.waiting[rows])
        table.leave(rows[latest.ended & sound & (waiting == 0)], now_s)
        self.sightings.look(rows, np.where(sound, waiting, 0), len(table), now_s)
        self.polled = True
        return latest

    def _note_faults(self, rows: Ints, latest: Latest) -> None:
        fault, names = self._table.fault, self._table.names
        if not fault and not any(latest.fault):
            return
        lines = []
        for row, reason in zip(rows.tolist(), latest.fault, strict=True):
            if not reason and fault.pop(row, None) is not None:
                lines.append(f"stream {names[row]} is sound again")
            elif reason and fault.get(row) != reason:
                fault[row] = reason
                lines.append(f"stream {names[row]} is suspended: {reason}")
        for line in lines[:MOST_LINES]:
            log.warning(line)
        if len(lines) > MOST_LINES:
            log.warning("%d further streams were suspended or resumed", len(lines) - MOST_LINES)

    def _resume(self, resumed: Mapping[str, tuple[int, int]]) -> None:
        """Read suspended streams on from where they now begin, where the program says so.

        The order names the position it was given for, so it is carried out once, also when it is
        read again after a restart.
        """
        table = self._table
        for name, place in resumed.items():
            row = table.number.get(name)
            if row is None or row not in table.fault:
                continue
            if (int(table.position.major[row]), int(table.position.minor[row])) == place:
                first = self._backend.first([name])
                table.position = table.position.put(np.array([row]), first)
                table.waiting[row] = 0
                log.warning("stream %s resumes from its beginning, as requested", name)

    def _hold_leaving(self, rows: Ints, latest: Latest, sound: Bools, now_s: float) -> Latest:
        """A leaving stream reaches to where it was when it left, and is gone once that is read."""
        table, waiting = self._table, latest.waiting_rows
        leaving = table.state[rows] == LEAVING
        fresh = leaving & (table.remaining[rows] < 0)
        seen = rows[fresh & sound]
        table.final = table.final.put(seen, latest.end.take(fresh & sound))
        table.remaining[seen] = waiting[fresh & sound]
        # One that vanished with nothing unread has simply ended.
        table.remaining[rows[fresh & ~sound & (table.waiting[rows] == 0)]] = 0
        ends = rows[leaving]
        end = latest.end.put(leaving, table.final.take(ends))
        held = waiting.copy()
        held[leaving] = np.minimum(waiting[leaving], np.maximum(table.remaining[ends], 0))
        reached = table.position.take(rows).same(end) & sound
        done = leaving & ((table.remaining[rows] == 0) | reached)
        held[done] = 0
        table.leave(rows[done], now_s)
        return replace(latest, end=end, waiting_rows=held)
