"""`spark.readStream.format("penstock")`: lanes as partitions, an admission log behind the offsets.

One reader lives in the source's runner and has a gate; another is pickled to the executors and only
reads. What a task needs travels in its partition.
"""

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import StructType

from penstock.errors import InvalidInput
from penstock.model.observation import Ints
from penstock.spark.routes.method import OFFSET
from penstock.spark.routes.reading import RoutedReading
from penstock.spark.sources.backends.backend import Backend, Chunk, Malformed, Positions, Ranges
from penstock.spark.sources.backends.classes import OURS, backend_class, make_backend
from penstock.spark.sources.batch_choice import (
    BatchChoices,
    Bools,
    Choice,
    dropped_of_ranges,
    kept,
    seed_of,
)
from penstock.spark.sources.dead_letters import letter_file, write_letters
from penstock.spark.sources.entry import Batch
from penstock.spark.sources.gate import Gate
from penstock.spark.sources.log import AdmissionLog, DamagedLog, new_log
from penstock.spark.sources.packing import packs, rows_schema, well_sized
from penstock.spark.sources.partition import LanePartition, packed, unpacked
from penstock.spark.sources.settings import SourceSettings

FORMAT = "penstock"
NO_LIMIT = 2**62
LOGS = "logs"
AT_ONCE = "at_once"  # an option: "true" where only what is there at first is read
PACKS = "packs"  # an option: the schema, where rows cross to Spark in packs


class PenstockSource(DataSource):
    """Many streams of one system; made from a JSON text of settings and the columns as DDL."""

    @classmethod
    def name(cls) -> str:
        """The name of the format."""
        return FORMAT

    def schema(self) -> str | StructType:
        """The declared columns, and one for the stream's name if it is wanted; or their packs."""
        if PACKS in self.options:
            return StructType.fromJson(json.loads(self.options[PACKS]))
        columns = str(self.options["columns"])
        named = json.loads(self.options["settings"])["stream_column"]
        columns = columns if named is None else f"{columns}, `{named}` STRING"
        return self._routed().schema(self._choices().schema(columns))

    def streamReader(self, schema: StructType) -> "PenstockReader":
        """The reader, made from options alone."""
        once = self.options.get(AT_ONCE) == "true"
        return PenstockReader(
            self.options["settings"], schema, self._routed(), self._choices(), once
        )

    def _choices(self) -> BatchChoices:
        return BatchChoices.of(self.options, json.loads(self.options["settings"])["source"])

    def _routed(self) -> RoutedReading:
        source = json.loads(self.options["settings"])["source"]
        return RoutedReading.of(self.options, source)


class PenstockReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Offsets are {arrived, log, rows, seq, source}; only `log` and `seq` decide what is read."""

    def __init__(
        self, settings: str, schema: StructType, routed: RoutedReading,
        choices: BatchChoices | None = None, once: bool = False,
    ) -> None:  # fmt: skip
        self._text = settings
        self._schema = schema
        self._routed = routed
        self._choices = choices or BatchChoices(routed.source)
        self._gate: Gate | None = None
        self._log: AdmissionLog | None = None
        self._log_number = -1
        self._once = once
        self._newest: dict[str, Any] | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {
            "settings": self._text, "schema": self._schema, "routed": self._routed,
            "choices": self._choices,
        }  # fmt: skip

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(**state)  # type: ignore[misc]

    def initialOffset(self) -> dict[str, Any]:
        """Before the first batch; which log it will be in is not known yet."""
        return self._offset(-1, 0, 0, [])

    def getDefaultReadLimit(self) -> ReadLimit:
        """Our own limits apply; only an explicit ReadAllAvailable overrides them."""
        return ReadMaxRows(NO_LIMIT)

    def prepareForTriggerAvailableNow(self) -> None:
        """Read what is there, then end."""
        self._once = True

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        """How far the next batch goes, decided and written down."""
        gate = self._bound(int(start["log"]), int(start["seq"]))
        if int(start["seq"]) < gate.seq and self._newest is not None:
            return self._newest
        if not self._once and self._choices.waits():
            return start
        most = limit.max_rows if isinstance(limit, ReadMaxRows) else None
        bound = None if most is None or most >= NO_LIMIT else most
        admitted = gate.admit(bound, isinstance(limit, ReadAllAvailable))
        if admitted is None:
            return start
        batch = admitted.batch
        rows = int(batch.rows.sum())
        offset = self._offset(self._log_number, batch.seq, rows, admitted.arrived)
        chosen = self._choices.offset(start, lambda share: _dropped(batch, gate.names, share))
        self._newest = offset | self._routed.offset(start) | chosen
        return self._newest

    def reportLatestOffset(self) -> dict[str, Any] | None:
        """Rows that wait, admitted or not: the lag in the query's progress."""
        gate = self._gate
        return None if gate is None else {"seq": gate.seq, "waiting_rows": gate.waiting_rows}

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """One partition for each lane that has rows in the entries after `start` up to `end`."""
        first, last = int(start["seq"]) + 1, int(end["seq"])
        if last < first:
            return []
        self._bound(int(end["log"]), last)
        assert self._log is not None
        # One entry is one batch: latestOffset gives the same entry until Spark goes on from it.
        if first != last or last not in self._log.recent:
            raise DamagedLog(f"{self._log.directory}: entries {first} to {last} are not one batch.")
        choice = self._choices.choice(end)
        return self._lanes(self._log.recent[last], self._names(), end.get(OFFSET), choice)

    def commit(self, end: dict[str, Any]) -> None:
        """Entries up to here are not needed any more."""
        if self._gate is not None and int(end["seq"]) > 0:
            self._gate.committed(int(end["seq"]))

    def stop(self) -> None:
        """Let go of the log and of the backend."""
        if self._log is not None:
            self._log.close()
            self._log = self._gate = None

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of a lane, each stream's in order; the malformed are put aside."""
        assert isinstance(partition, LanePartition)
        rows = well_sized(self._rows(partition))
        routed = self._routed.routed(rows, partition.routes, partition.lane)
        in_packs = _settings(self._text).packed
        yield from packs(routed, self._schema) if in_packs else routed

    def _rows(self, partition: LanePartition) -> Iterator[pa.RecordBatch]:
        settings, backend = _settings(self._text), _backend(self._text)
        ranges = unpacked(partition.ranges)
        schema = rows_schema(self._schema) if settings.packed else self._schema
        arrow = to_arrow_schema(schema, timezone="UTC")
        if self._routed.in_lanes:  # the last column is written by whoever routes
            arrow = arrow.remove(len(arrow) - 1)
        if self._choices.operators:
            arrow = arrow.remove(len(arrow) - 1)
        named = settings.stream_column
        plain = arrow if named is None else arrow.remove(arrow.get_field_index(named))
        malformed: list[Malformed] = []
        share, place = partition.choice.shed, _first_places(ranges.start).tolist()
        for chunk in backend.read(ranges, plain):
            if settings.backend not in OURS:
                _check_arrow(chunk.rows, settings)
            malformed += chunk.malformed
            if chunk.rows.num_rows:
                rows = _finished(chunk, ranges, arrow, named)
                if share > 0:
                    rows = rows.filter(pa.array(_kept(chunk, ranges, place, share)))
                if rows.num_rows:
                    yield self._choices.with_forms(rows, partition.choice)
        if malformed:
            folder = Path(settings.dead_letters)
            file = letter_file(folder, partition.log, partition.seq, partition.lane)
            write_letters(file, malformed)

    def _bound(self, number: int, seq: int) -> Gate:
        """The gate, its log open at an entry that Spark knows; a new log where it knows none."""
        if self._gate is None:
            settings = _settings(self._text)
            logs = Path(settings.directory) / LOGS
            log = AdmissionLog(logs / str(number)) if number >= 0 else new_log(logs)
            number = int(log.directory.name)
            try:
                gate = Gate(settings, _backend(self._text), log, number, seq)
            except BaseException:
                log.close()
                raise
            self._gate, self._log, self._log_number = gate, log, number
        self._gate.once = self._once
        return self._gate

    def _names(self) -> Sequence[str]:
        assert self._gate is not None
        return self._gate.names

    def _lanes(
        self, batch: Batch, names: Sequence[str], routes: str | None, choice: Choice
    ) -> list[InputPartition]:
        cuts = np.flatnonzero(np.concatenate(([True], batch.lane[1:] != batch.lane[:-1])))
        parts: list[InputPartition] = []
        for start, end in zip(cuts, [*cuts[1:], len(batch)], strict=True):
            rows = np.arange(start, end)
            table = packed(
                [names[stream] for stream in batch.stream[rows].tolist()],
                batch.start.take(rows), batch.end.take(rows), batch.rows[rows],
            )  # fmt: skip
            lane = int(batch.lane[start])
            parts.append(LanePartition(self._log_number, batch.seq, lane, table, routes, choice))
        return parts

    def _offset(self, log: int, seq: int, rows: int, arrived: list[list[float]]) -> dict[str, Any]:
        settings = json.loads(self._text)
        # Keys in the order of the alphabet: Spark compares offsets as text.
        offset = {"arrived": arrived, "log": log}
        if settings["packed"]:
            offset["packed"] = True
        return {**offset, "rows": rows, "seq": seq, "source": settings["source"]}


def _check_arrow(rows: pa.RecordBatch, settings: SourceSettings) -> None:
    """What a class of the user's made, before Spark believes it: a wrong offset ends a JVM."""
    try:
        rows.validate(full=True)
    except pa.ArrowInvalid as error:
        raise InvalidInput(
            f"source {settings.source}: {settings.backend} gave rows that are not valid Arrow: "
            f"{error}"
        ) from error


def _finished(chunk: Chunk, ranges: Ranges, arrow: pa.Schema, named: str | None) -> pa.RecordBatch:
    """A chunk as Spark gets it: with the columns that are not in the stream's own records."""
    if named is None:
        return chunk.rows
    names = pa.array(ranges.streams, pa.string())
    column = names.take(pa.array(np.repeat(chunk.ranges, chunk.counts)))
    place = arrow.get_field_index(named)
    columns = list(chunk.rows.columns)
    return pa.RecordBatch.from_arrays([*columns[:place], column, *columns[place:]], schema=arrow)


def _dropped(batch: Batch, names: Sequence[str], share: float) -> int:
    """Rows of a batch that are shed, as far as its backend counts records exactly."""
    seeds = np.array([seed_of(names[stream]) for stream in batch.stream.tolist()], dtype=np.int64)
    return dropped_of_ranges(_first_places(batch.start), batch.rows, share, seeds)


def _first_places(start: Positions) -> Ints:
    """One number for each position, modulo 2^64; rows of a range are numbered on from it."""
    places: Ints = start.major * 1_000_003 + start.minor
    return places


def _kept(chunk: Chunk, ranges: Ranges, place: list[int], share: float) -> Bools:
    """Which rows of a chunk are not shed; `place` counts on where each range has come to."""
    masks = []
    for number, count in zip(chunk.ranges.tolist(), chunk.counts.tolist(), strict=True):
        seed = seed_of(ranges.streams[number])
        masks.append(kept(place[number], count, share, seed))
        place[number] += count
    return np.concatenate(masks)


@lru_cache(maxsize=8)
def _settings(text: str) -> SourceSettings:
    return SourceSettings.from_json(text)


@lru_cache(maxsize=8)
def _made(text: str, process: int) -> Backend:
    settings = _settings(text)
    return make_backend(settings.backend, settings.options)


def _backend(text: str) -> Backend:
    """One backend for each process: connections must not cross a fork."""
    return _made(text, os.getpid())


def columns_of(kind: str, schema: str | None, options: Mapping[str, Any]) -> str | None:
    """The columns as DDL: declared ones, or those the backend always has."""
    return schema if schema is not None else backend_class(kind).schema(options)
