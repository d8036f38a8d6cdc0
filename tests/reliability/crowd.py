"""Very many streams before a gate, second by second: real streams and log, a clock that is set.

The part of Spark is played here: it logs the offset of a batch, reads its ranges, commits. A kill
takes the gate away at any of these moments, and another goes on from what Spark would know.
"""

import random
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from contract.gate_world import Clock
from penstock.sources import Backend, Ranges
from penstock.spark.sources.entry import Batch
from penstock.spark.sources.gate import Gate
from penstock.spark.sources.log import AdmissionLog
from penstock.spark.sources.program import StreamsProgram
from penstock.spark.sources.settings import Limits, SourceSettings
from penstock.spark.sources.status import read_status

SCHEMA = pa.schema([("seq", pa.int64())])
BOUND_S = PERIOD_S = 5.0
KILLED = 0.08  # of moments at which it may be; a gate forgets what it has learnt of rates
TURNS = 3  # streams write every so many seconds, in turn
Append = Callable[[dict[str, tuple[int, int]]], None]  # from and up to which number, by stream
Read = dict[str, list[int]]


@dataclass
class Crowd:
    """Streams, the gate before them, and what came out."""

    folder: Path
    clock: Clock
    make: Callable[[], Backend]
    append: Append
    rate_per_s: int  # of each stream
    lane_per_s: int
    moments: random.Random
    written: dict[str, int] = field(default_factory=dict)
    gone: set[str] = field(default_factory=set)
    kills: int = 0
    killed_at: int = -1_000  # the second
    seq: int = 0  # up to which Spark has committed
    second: int = 0

    def __post_init__(self) -> None:
        self.settings = SourceSettings(
            "many", str(self.folder / "many"), "", {}, str(self.folder / "dead"),
            discovery_period_s=1.0,
            limits=Limits(
                lane_capacity_per_s=float(self.lane_per_s), lane_rows=self.lane_per_s,
                lanes_max=256, period_s=PERIOD_S, latency_bound_s=BOUND_S,
            ),
        )  # fmt: skip
        self.program = StreamsProgram(self.folder, ["many"])
        self._came: dict[str, list[tuple[int, int]]] = defaultdict(list)  # up to, second
        self._read: Read = defaultdict(list)
        self._oldest: dict[str, int] = {}  # place in `_came` of the oldest row not read
        self._log: AdmissionLog | None = None
        self._start(0)

    def write(self, rows: dict[str, int]) -> None:
        """So many more rows to each of these streams."""
        spans = {name: (self.written.get(name, 0), count) for name, count in rows.items()}
        self.append({name: (first, first + count) for name, (first, count) in spans.items()})
        for name, (first, count) in spans.items():
            self.written[name] = first + count
            self._came[name].append((first + count, self.second))

    def leave(self, names: list[str]) -> None:
        """Nothing is written to them any more, and what there is is still read."""
        for name in names:
            self.program.remove(name)
            self.gone.add(name)

    def go_on(self, factor: int = 1) -> dict[str, Any]:
        """A second: a share of the streams write, a batch is read, perhaps after kills."""
        self.second += 1
        self.clock.now_s += 1.0
        turn = [n for n in self.written if n not in self.gone][self.second % TURNS :: TURNS]
        if factor:
            self.write(dict.fromkeys(turn, factor * self.rate_per_s * TURNS))
        batch = self._admitted()
        if batch is None:
            return self.told
        rows = self._rows(batch)
        while self.moments.random() < KILLED:  # the batch is in Spark's log, and is read again
            self._kill(batch.seq)
            assert self._log is not None
            again = self._log.recent[batch.seq]
            assert self._rows(again) == rows, "the same range, the same rows"
        for name, numbers in rows.items():
            self._read[name] += numbers
        self.gate.committed(batch.seq)
        self.seq = batch.seq
        return self.told

    def latest_s(self) -> int:
        """For how many seconds the oldest row that is not read has waited."""
        worst = 0
        for name, came in self._came.items():
            at, read = self._oldest.get(name, 0), len(self._read[name])
            while at < len(came) and came[at][0] <= read:
                at += 1
            self._oldest[name] = at
            if at < len(came):
                worst = max(worst, self.second - came[at][1])
        return worst

    def verify(self) -> None:
        """Every record once and in order; streams that left were read to where they were."""
        for name, count in self.written.items():
            assert self._read[name] == list(range(count)), name

    @property
    def told(self) -> dict[str, Any]:
        """The status as it was last written."""
        found = read_status(self.folder / "many/logs/0")
        assert found is not None
        return found

    def close(self) -> None:
        """Let go of the log and the backend."""
        self._backend.close()
        assert self._log is not None
        self._log.close()

    def _admitted(self) -> Batch | None:
        """The next batch; a gate may be killed after it has decided and before Spark knows."""
        made = self.gate.admit(None, everything=False)
        while made is not None and self.moments.random() < KILLED:
            self._kill(self.seq)
            made = self.gate.admit(None, everything=False)
        if made is None:
            return None
        self._check_lanes(made.batch)
        return made.batch

    def _check_lanes(self, batch: Batch) -> None:
        """No lane starves: each that has something waiting reads something."""
        read = {f"lane-{number}" for number in np.unique(batch.lane).tolist()}
        hungry = {lane["name"] for lane in self.told["lanes"] if lane["queue_rows"] > 0}
        assert hungry <= read, (self.second, hungry - read)

    def _rows(self, batch: Batch) -> Read:
        """What the tasks of a batch read, each lane by itself."""
        found: Read = defaultdict(list)
        for lane in np.unique(batch.lane):
            rows = np.flatnonzero(batch.lane == lane)
            streams = [self.gate.names[number] for number in batch.stream[rows].tolist()]
            ranges = Ranges(streams, batch.start.take(rows), batch.end.take(rows), batch.rows[rows])
            for chunk in self._backend.read(ranges, SCHEMA):
                assert not chunk.malformed
                numbers = chunk.rows.column(0).to_pylist()
                at = 0
                for place, count in zip(chunk.ranges.tolist(), chunk.counts.tolist(), strict=True):
                    found[streams[place]] += numbers[at : at + count]
                    at += count
        return found

    def _kill(self, seq: int) -> None:
        self.kills += 1
        self.killed_at = self.second
        self.close()
        self._start(seq)

    def _start(self, seq: int) -> None:
        self._backend = self.make()
        self._log = AdmissionLog(self.folder / "many/logs/0")
        self.gate = Gate(self.settings, self._backend, self._log, 0, seq)
