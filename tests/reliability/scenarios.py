"""What is disturbed: batches into files and a channel, the admission log, a run's records."""

import json
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np

from penstock.errors import Unavailable
from penstock.model.sinks import Files, ToChannel
from penstock.model.topology import SinkBinding, Topology
from penstock.spark.channels.chunks import read_piece
from penstock.spark.channels.log import Channel
from penstock.spark.checkpoint.carried_state import copy_checkpoint
from penstock.spark.checkpoint.durable_files import remove_leftovers, remove_tree, sync_tree
from penstock.spark.checkpoint.last_batches import LastBatches
from penstock.spark.checkpoint.layout import Checkpoint
from penstock.spark.handles.driver import STRICT
from penstock.spark.sinks.batch_writer import BatchCalls, BatchWriter, ChannelSide
from penstock.spark.sinks.commit_records import CommitRecords
from penstock.spark.sinks.ownership import held_outputs
from penstock.spark.sources.backends.backend import positions
from penstock.spark.sources.entry import Batch, Joined, no_one
from penstock.spark.sources.log import AdmissionLog
from penstock.spark.sources.streams import StreamTable

from .crash_points import Disk, Scenario
from .fake_batches import FakeBatch, FakeQuery

ROWS = 5


class SparkLog:
    """Spark's own log of a query: written whole, never synced."""

    def __init__(self, directory: Path, disk: Disk | None) -> None:
        self.offsets, self.commits = directory / "offsets", directory / "commits"
        for folder in (self.offsets, self.commits):
            folder.mkdir(parents=True, exist_ok=True)
        self._disk = disk

    def planned(self) -> tuple[int, Any]:
        """The number and end of the last batch that was planned."""
        numbers = [int(file.name) for file in self.offsets.iterdir()]
        last = max(numbers, default=-1)
        return last, self.end(last)

    def end(self, number: int) -> Any:
        file = self.offsets / str(number)
        return json.loads(file.read_text())["end"] if file.exists() else 0

    def plan(self, number: int, end: Any, attempt: int) -> None:
        self._write(self.offsets / str(number), {"end": end, "attempt": attempt})

    def commit(self, number: int) -> None:
        self._write(self.commits / str(number), {})

    def committed(self, number: int) -> bool:
        return (self.commits / str(number)).exists()

    def _write(self, file: Path, value: Any) -> None:
        if self._disk is not None:
            self._disk.names_change(file.parent)
        file.write_text(json.dumps(value))


class Batches(Scenario):
    """Rows into a file sink and a channel, from where a reader takes them; a batch is empty.

    The sink's directory has batches of another run, which are to be removed first.
    """

    def prepare(self) -> None:
        self.held = ExitStack()
        for number in (0, 7):
            before = self.directory / f"out/batch={number}"
            before.mkdir(parents=True)
            (before / "part.json").write_text('{"n": 99}')
        self.attempts = 0
        self.read: list[int] = []  # what the channel's reader has worked through, for good

    def run(self) -> None:
        self.attempts += 1
        self.spark = SparkLog(self.directory / "query", self.disk)
        out, channel = self.directory / "out", self.directory / "channel"
        records = self.directory / "records"
        records.mkdir(exist_ok=True)
        sinks = (
            SinkBinding("files", "rows", Files(str(out), "json", overwrite=True)),
            SinkBinding("channel", "rows", ToChannel(str(channel))),
        )
        query = FakeQuery(sinks)
        road = Topology("road", max_latency="5s")
        road.sink("files", "rows", sinks[0].sink)
        goes_on = self.spark.planned()[0] >= 0
        self.retried(lambda: self.held.enter_context(held_outputs(road, "w", goes_on)))
        calls = BatchCalls(lambda _: None, lambda: None, lambda _: None)
        self.retried(lambda: remove_leftovers(records))  # as who opens a checkpoint does
        writer = self.retried(
            lambda: BatchWriter(
                query,
                CommitRecords(records, self.spark.offsets),
                calls,
                ChannelSide("w", lambda _: None),
            )
        )
        self.channel = Channel(channel)
        self.retried(lambda: self.channel.register("reader"))
        while True:
            number, end = self.spark.planned()
            if number < 0 or self.spark.committed(number):
                if end == ROWS:
                    break
                number += 1
                # Another attempt at planning cuts the rows otherwise, as a source may.
                more = 0 if number == 1 else 2 + self.attempts % 2
                start, end = end, min(ROWS, end + more)
                self.spark.plan(number, end, self.attempts)
            else:
                start = self.spark.end(number - 1)
            batch = FakeBatch(list(range(start, end)))
            self.retried(lambda b=batch, n=number: writer(b, n))  # type: ignore[misc]
            self.spark.commit(number)
            self._read()

    def _read(self) -> None:
        """Read on; Spark tells of a commit when it plans the next batch."""
        before = len(self.read)
        self.retried(lambda: self.channel.advance("reader", before))
        end = self.channel.end_row()
        if end > before:
            pieces = self.channel.pieces(before, end)
            batches = [batch for piece in pieces for batch in read_piece(piece)]
            self.read += [n for batch in batches for n in batch.column("n").to_pylist()]

    def abandon(self) -> None:
        """Channels hold their lock only while they change."""
        self.held.close()

    def result(self) -> Any:
        files = self.directory.glob("out/batch=*/*.json")
        lines = [line for file in files for line in file.read_text().splitlines()]
        self._read()
        staged = list(self.directory.glob("*/_staged/*"))
        return sorted(json.loads(line)["n"] for line in lines), self.read, staged


def admitted(seq: int) -> Batch:
    """One stream, ten rows a batch."""
    joined = Joined(["a"], positions([0]), np.array([5.0])) if seq == 1 else no_one()
    return Batch(
        seq, np.array([0]), np.array([0]), positions([10 * (seq - 1)]), positions([10 * seq]),
        np.array([10]), joined,
    )  # fmt: skip


class Admission(Scenario):
    """Entries of the admission log, over several segments; Spark remembers how far it is."""

    last = 6

    def prepare(self) -> None:
        self.known = 0  # the entry that Spark has logged
        self.ranges: list[tuple[int, int]] = []  # what it has read, for good
        self.log: AdmissionLog | None = None

    def run(self) -> None:
        self._open()
        while self.known < self.last or len(self.ranges) < self.last:
            assert self.log is not None
            if len(self.ranges) == self.known:  # the batch is committed: plan the next
                try:
                    self.retried(lambda: self._admit(self.known + 1))
                except Unavailable:  # it must be opened again, as it says
                    self.abandon()
                    self._open()
                    self._admit(self.known + 1)
                self.known += 1
            batch = self.log.recent[self.known]
            self.ranges.append((int(batch.start.minor[0]), int(batch.end.minor[0])))
            self.retried(lambda: self.log.committed(self.known - 1))  # type: ignore[union-attr]
        assert self.table.position.minor.tolist() == [10 * self.known]

    def _open(self) -> None:
        def opened() -> None:
            self.abandon()
            self.log = AdmissionLog(self.directory / "logs" / "0")
            self.table = StreamTable()
            for entry in self.log.open(self.table.snapshot(0), self.known):
                self.table.restore(entry)

        self.retried(opened)

    def _admit(self, seq: int) -> None:
        """As the gate does; a failure ends the query, and Spark does not learn of the entry."""
        assert self.log is not None
        batch = admitted(seq)
        if seq not in self.log.recent:
            self.log.append(batch)
            self.table.restore(batch)
        if self.log.full:
            self.log.roll(self.table.snapshot(seq))

    def abandon(self) -> None:
        if self.log is not None:
            self.log.close()
            self.log = None

    def result(self) -> Any:
        return self.known, self.ranges


class Records(Scenario):
    """A checkpoint's records, and a query whose state is carried over to another plan."""

    def prepare(self) -> None:
        self.checkpoint: Checkpoint | None = None
        self.remembered: set[tuple[float, str]] = set()

    def _begin(self, old: Path) -> None:
        """As Spark does once a query is started."""
        for batch in range(3):
            for folder in ("offsets", "commits"):
                (old / folder).mkdir(parents=True, exist_ok=True)
                settings = json.dumps({"conf": {STRICT: "true"}})
                (old / folder / str(batch)).write_text(f"v1\n{settings}\n{batch}")
                (old / folder / f".{batch}.crc").write_text("x")
        (old / "commits/2").unlink()  # planned, and never written
        metadata = old / "state/0/_metadata/metadata"
        metadata.parent.mkdir(parents=True)
        metadata.write_text('v1\n{"name": "StatefulStreamlineAggregate"}')
        self.before = _tree(old)

    def run(self) -> None:
        def entered() -> None:
            self.abandon()
            checkpoint = Checkpoint(self.directory / "checkpoint")
            self.checkpoint = checkpoint.__enter__()

        self.retried(entered)
        checkpoint = self.checkpoint
        assert checkpoint is not None
        epoch_s = self.retried(lambda: checkpoint.epoch_s(float(len(self.remembered))))
        writer = self.retried(checkpoint.writer_id)
        self.retried(lambda: checkpoint.check_identity({"topology": "road", "key_groups": 2}))
        self.retried(lambda: checkpoint.commits("road"))
        self.remembered.add((epoch_s, writer))
        old = checkpoint.directory / "queries/road"
        if checkpoint.query_folder("road") == old:
            if not old.exists():
                self._begin(old)
            assert _tree(old) == self.before
            self.retried(self._carry_over)
        last = self.retried(lambda: LastBatches(checkpoint, ["road"]))
        self.retried(lambda: last.ended({"road": 1}))

    def _carry_over(self) -> None:
        """As when plans are agreed on, but for what Spark does with the state in the copy."""
        assert self.checkpoint is not None
        queries = self.checkpoint.directory / "queries"
        old, new = queries / "road", queries / "road.plan1"
        remove_tree(new)
        copy_checkpoint(old, new, 1, strict=False)
        sync_tree(new)
        self.checkpoint.record_plan({"directories": {"road": "road.plan1"}})

    def abandon(self) -> None:
        if self.checkpoint is not None:
            self.checkpoint.__exit__(None, None, None)
            self.checkpoint = None

    def result(self) -> Any:
        with Checkpoint(self.directory / "checkpoint") as checkpoint:
            folder = checkpoint.query_folder("road")
            assert len(self.remembered) == 1, "what is fixed at the first start stays"
            return folder.name, _tree(folder), checkpoint.last_handed()


def _tree(folder: Path) -> dict[str, str]:
    files = [path for path in folder.rglob("*") if path.is_file()]
    return {str(file.relative_to(folder)): file.read_text() for file in files}
