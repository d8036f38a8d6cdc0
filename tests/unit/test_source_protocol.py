"""The reader as Spark uses it, crashed at every step: each record once, in order.

A small model of Spark's side (offsets are written before a batch runs, commits after it) drives the
real reader over real files; a crash throws the reader away, with whatever Spark had not written.
"""

import json
import pickle
import random
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql.streaming.datasource import ReadMaxRows
from pyspark.sql.types import LongType, StringType, StructField, StructType

from penstock.model.sources import Admission, Streams
from penstock.spark.routes.reading import RoutedReading
from penstock.spark.sources import log as log_module
from penstock.spark.sources.program import StreamsProgram
from penstock.spark.sources.reader import NO_LIMIT, PenstockReader
from penstock.spark.sources.settings import settings_of

SCHEMA = StructType([StructField("seq", LongType()), StructField("stream", StringType())])


class Crash(Exception):
    """The process is gone."""


class SparkSide:
    """Offsets, commits and outputs, as they survive."""

    def __init__(self, settings: str, chance: random.Random) -> None:
        self._settings, self._chance = settings, chance
        self.offsets: list[dict[str, Any]] = []
        self.committed = 0
        self.outputs: list[dict[str, list[int]]] = []
        self._reader: PenstockReader | None = None

    def step(self) -> None:
        """One batch, or a crash somewhere in it."""
        try:
            self._run()
        except Crash:
            if self._reader is not None:
                self._reader.stop()  # the kernel lets go of a dead process's lock
            self._reader = None

    def _run(self) -> None:
        if self._reader is None:
            self._reader = PenstockReader(self._settings, SCHEMA, RoutedReading("files"))
        reader = self._reader
        if len(self.offsets) == self.committed:
            start = self.offsets[-1] if self.offsets else reader.initialOffset()
            end = reader.latestOffset(start, ReadMaxRows(NO_LIMIT))
            self._may_crash()
            if end == start:
                return
            self.offsets.append(json.loads(json.dumps(end)))
            self._may_crash()
            if self.committed:
                reader.commit(self.offsets[self.committed - 1])
        start = self.offsets[-2] if len(self.offsets) > 1 else reader.initialOffset()
        rows: dict[str, list[int]] = {}
        tasks = pickle.loads(pickle.dumps(reader))
        for partition in pickle.loads(pickle.dumps(reader.partitions(start, self.offsets[-1]))):
            for batch in tasks.read(partition):
                self._may_crash()
                for row in batch.to_pylist():
                    rows.setdefault(row["stream"], []).append(row["seq"])
        self._may_crash()
        self.outputs.append(rows)
        self.committed += 1
        self._may_crash()

    def _may_crash(self) -> None:
        if self._chance.random() < 0.12:
            raise Crash


@pytest.mark.parametrize("seed", range(3))
def test_every_record_once_whatever_crashes(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_module, "MOST_ENTRIES", 4)
    chance = random.Random(seed)
    folder = tmp_path / "in"
    folder.mkdir()
    admission = Admission(
        strategy="par", lane_capacity=30, lane_rows=20, lanes_max=3, period="0.01s", max_rows=45
    )
    streams = Streams(
        files=str(folder), schema="seq BIGINT", stream_column="stream", admission=admission,
        discovery_period="0.001s",
    )  # fmt: skip
    settings = settings_of(streams, "files", tmp_path / "files", 0.0).to_json()
    asked, spark = StreamsProgram(tmp_path, ["files"]), SparkSide(settings, chance)
    written: dict[str, int] = {}
    closed: set[str] = set()

    def write(name: str, count: int) -> None:
        first = written.setdefault(name, 0)
        with (folder / name).open("a") as file:
            file.writelines(f'{{"seq": {seq}}}\n' for seq in range(first, first + count))
        written[name] += count

    for turn in range(60):
        for name in [*written]:
            if name not in closed:
                write(name, chance.randint(0, 15))
        if turn % 8 == 0:
            write(f"s{turn}.json", chance.randint(1, 30))
        if turn % 17 == 16:
            gone = chance.choice([name for name in written if name not in closed])
            closed.add(gone)
            asked.remove(gone)
        spark.step()
    monkeypatch.setattr(spark, "_may_crash", lambda: None)
    for _ in range(200):
        spark.step()
    found: dict[str, list[int]] = {}
    for batch in spark.outputs:
        for name, seqs in batch.items():
            found.setdefault(name, []).extend(seqs)
    for name, count in written.items():
        seqs = found.get(name, [])
        assert seqs == list(range(len(seqs))), name  # none twice, none skipped
        # One that was removed before anyone saw it was never a stream.
        assert len(seqs) == count or (name in closed and not seqs), name
    assert len(list((tmp_path / "files/logs").glob("*/*.segment"))) < len(spark.offsets) / 2
