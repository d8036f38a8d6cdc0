"""A source's gate over streams that are only numbers of rows, by a clock that is set."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.errors import Unavailable
from penstock.model.observation import Ints
from penstock.spark.sources.backends.backend import (
    Advance,
    Backend,
    Chunk,
    Discovered,
    Latest,
    Positions,
    Ranges,
    positions,
)
from penstock.spark.sources.gate import Admitted, Gate
from penstock.spark.sources.log import AdmissionLog
from penstock.spark.sources.program import StreamsProgram
from penstock.spark.sources.settings import Limits, SourceSettings
from penstock.spark.sources.status import read_status


class Clock:
    """Time that passes when told to."""

    def __init__(self) -> None:
        self.now_s = 1_000.0
        self.set_by_s = 0.0

    def time(self) -> float:
        return self.now_s + self.set_by_s

    def monotonic(self) -> float:
        return self.now_s


class Shelf(Backend):
    """Streams that are only numbers of rows."""

    def __init__(self) -> None:
        self.rows: dict[str, int] = {}
        self.fault: dict[str, str] = {}
        self.metas: dict[str, dict[str, Any]] = {}
        self.away = False

    @classmethod
    def from_options(cls, options: Mapping[str, Any]) -> "Shelf":
        return cls()

    def discover(self) -> Sequence[Discovered]:
        if self.away:
            raise Unavailable("the shelf is away.")
        return [Discovered(name, self.metas.get(name, {})) for name in self.rows]

    def first(self, streams: Sequence[str]) -> Positions:
        return positions([0] * len(streams))

    def latest(self, streams: Sequence[str], since: Positions, whole: bool = False) -> Latest:
        if self.away:
            raise Unavailable("the shelf is away.")
        end = np.array([self.rows.get(name, 0) for name in streams], dtype=np.int64)
        end = np.maximum(end, since.minor)
        unknown = np.full(len(streams), np.nan)
        fault = [self.fault.get(name, "") for name in streams]
        none = np.zeros(len(streams), dtype=bool)
        return Latest(positions(end), end - since.minor, unknown, unknown, fault, none)

    def advance(
        self, streams: Sequence[str], start: Positions, latest: Positions, rows: Ints
    ) -> Advance:
        end = np.minimum(start.minor + rows, latest.minor)
        unknown = np.full(len(streams), np.nan)
        return Advance(positions(end), end - start.minor, unknown, unknown)

    def read(self, ranges: Ranges, schema: pa.Schema) -> Iterator[Chunk]:
        raise NotImplementedError


class World:
    """A gate with its surroundings, which can be restarted."""

    def __init__(self, folder: Path, clock: Clock, **limits: Any) -> None:
        self.shelf, self.clock, self.folder = Shelf(), clock, folder
        self.declared = folder / "streams.toml"
        chosen = {
            "lane_capacity_per_s": 100.0, "lane_rows": 100, "period_s": 1.0,
            "latency_bound_s": 1.0, **limits,
        }  # fmt: skip
        self.settings = SourceSettings(
            "many", str(folder / "many"), "shelf", {}, str(folder / "dead"),
            declared=str(self.declared), discovery_period_s=0.0, limits=Limits(**chosen),
        )  # fmt: skip
        self.program = StreamsProgram(folder, ["many"])
        self.log: AdmissionLog | None = None
        self.restart(0)

    def restart(self, seq: int) -> None:
        if self.log is not None:
            self.log.close()
        self.log = AdmissionLog(self.folder / "many/logs/0")
        self.gate = Gate(self.settings, self.shelf, self.log, 0, seq)

    def admit(self, everything: bool = False) -> dict[str, tuple[int, int]]:
        self.clock.now_s += 0.3
        made = self.gate.admit(None, everything)
        return {} if made is None else self.ranges(made)

    def ranges(self, made: Admitted) -> dict[str, tuple[int, int]]:
        batch = made.batch
        rows = zip(
            batch.stream.tolist(), batch.start.minor.tolist(), batch.end.minor.tolist(), strict=True
        )
        return {self.gate.names[stream]: (a, b) for stream, a, b in rows}

    @property
    def status(self) -> dict[str, Any]:
        self.clock.now_s += 1.0
        self.gate.admit(0, False)
        return self.told

    @property
    def told(self) -> dict[str, Any]:
        """The status as it was last written."""
        found = read_status(self.folder / "many/logs/0")
        assert found is not None
        return found
