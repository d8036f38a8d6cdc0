"""The directory of a file sink is one run's: no other mixes its batches with that run's."""

import errno
import json
import signal
import subprocess
import sys
from contextlib import AbstractContextManager
from pathlib import Path

import pyarrow as pa
import pyarrow.dataset as ds
import pytest
from pyarrow import fs

from penstock import Files, Generator, ToChannel, Topology, constant
from penstock.errors import InvalidInput, Unavailable
from penstock.model.topology import SinkBinding
from penstock.spark.channels.chunks import read_piece
from penstock.spark.channels.log import Channel
from penstock.spark.checkpoint import durable_files
from penstock.spark.sinks import files as file_sink
from penstock.spark.sinks import ownership, places
from penstock.spark.sinks.batch_writer import BatchCalls, BatchWriter, ChannelSide
from penstock.spark.sinks.commit_records import CommitRecords
from penstock.spark.sinks.files import TaskWriter
from penstock.spark.sinks.ownership import Outputs, held_outputs, refuse_other_runs
from reliability.crash_points import watched
from reliability.fake_batches import FakeBatch, FakeQuery

HOLDER = """
import fcntl, sys
file = open(sys.argv[1], "w")
fcntl.flock(file, fcntl.LOCK_EX)
print("held", flush=True)
sys.stdin.read()
"""


class Run:
    """A run's writer of batches, with records of its own."""

    def __init__(self, folder: Path, name: str, sink: Files | ToChannel) -> None:
        self.offsets, records = folder / name / "offsets", folder / name / "records"
        self.offsets.mkdir(parents=True)
        records.mkdir()
        self.name = name
        self.writer = BatchWriter(
            FakeQuery((SinkBinding("out", "rows", sink),)),
            CommitRecords(records, self.offsets),
            BatchCalls(lambda _: None, lambda: None, lambda _: None),
            ChannelSide(f"q-{name}", lambda _: None),
        )

    def batch(self, number: int, rows: list[int]) -> None:
        (self.offsets / str(number)).write_text(self.name)
        self.writer(FakeBatch(rows), number)


def held(sink: Files, writer: str, goes_on: bool = False) -> AbstractContextManager[Outputs]:
    made = Topology("road", max_latency="5s")
    made.source("rows", Generator(constant(10.0)))
    made.add("kept", "SELECT * FROM rows", "rows")
    made.sink("out", "kept", sink)
    return held_outputs(made, writer, goes_on)


def numbers(out: Path) -> list[int]:
    lines = [line for file in out.glob("batch=*/*.json") for line in file.read_text().splitlines()]
    return sorted(json.loads(line)["n"] for line in lines)


def stored_in(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A remote store, at store://; its files are in a folder here."""
    system = fs.SubTreeFileSystem(str(folder), fs.LocalFileSystem())
    monkeypatch.setattr(places, "_found", lambda url: (system, url.removeprefix("store://")))


def test_what_two_runs_stage_of_the_same_batch_is_not_the_same(tmp_path: Path) -> None:
    """Both may write to one channel."""
    channel = tmp_path / "channel"
    one, two = (Run(tmp_path, name, ToChannel(str(channel))) for name in ("one", "two"))
    publish = one.writer._publish

    def meanwhile(promised: dict[str, dict[str, object]]) -> None:
        two.batch(0, [100, 101])
        publish(promised)

    one.writer._publish = meanwhile  # type: ignore[method-assign]
    one.batch(0, [1, 2])
    found = Channel(channel)
    rows = [b for piece in found.pieces(0, found.end_row()) for b in read_piece(piece)]
    assert sorted(n for batch in rows for n in batch.column("n").to_pylist()) == [1, 2, 100, 101]


def test_a_batch_in_the_place_of_another_runs_is_refused(tmp_path: Path) -> None:
    sink = Files(str(tmp_path / "out"), "json")
    one, two = (Run(tmp_path, name, sink) for name in ("one", "two"))
    publish = one.writer._publish

    def meanwhile(promised: dict[str, dict[str, object]]) -> None:
        two.batch(0, [100, 101])
        publish(promised)

    one.writer._publish = meanwhile  # type: ignore[method-assign]
    with pytest.raises(Exception, match="batch=0 exists already and was not written by this run"):
        one.batch(0, [1, 2])
    assert numbers(tmp_path / "out") == [100, 101]


@pytest.mark.parametrize("overwrite", [False, True])
def test_a_directory_that_a_run_writes_to_is_refused_to_others(
    tmp_path: Path, overwrite: bool
) -> None:
    sink = Files(str(tmp_path / "out"), "json", overwrite)
    words = r"sink 'out': .*/out is in use by another run; end that run"
    with held(sink, "one"):
        Run(tmp_path, "one", sink).batch(0, [1, 2])
        with pytest.raises(Unavailable, match=words) as refusal, held(sink, "two"):
            pass
        assert refusal.value.__notes__ == ["See penstock docs reliability."]
        with pytest.raises(Unavailable, match=words):
            refuse_other_runs("out", sink)
    assert numbers(tmp_path / "out") == [1, 2]


def test_nobody_else_sees_whose_it_is(tmp_path: Path) -> None:
    sink = Files(str(tmp_path / "out"), "json")
    with held(sink, "one"):
        Run(tmp_path, "one", sink).batch(0, [1, 2])
        shown = [p for p in (tmp_path / "out").rglob("*") if not p.is_dir()]
        hidden = [p for p in shown if p.relative_to(tmp_path / "out").parts[0].startswith("_")]
        assert len(shown) == len(hidden) + 1
        assert [p for p in hidden if p.suffix] == [], "no name that a pattern of files fits"
        assert ds.dataset(str(tmp_path / "out"), format="json").count_rows() == 2


def test_who_goes_on_keeps_what_there_is_and_what_was_promised(tmp_path: Path) -> None:
    sink = Files(str(tmp_path / "out"), "json", overwrite=True)
    with held(sink, "one"):
        run = Run(tmp_path, "one", sink)
        run.batch(0, [1, 2])
        run.writer._publish = lambda _: 1 / 0  # type: ignore[method-assign,assignment,return-value]
        with pytest.raises(ZeroDivisionError):
            run.batch(1, [3])
    for goes_on in (True, False):  # not yet begun: it was killed before it wrote that down
        with held(sink, "one", goes_on):
            assert numbers(tmp_path / "out") == [1, 2]
    with held(sink, "one", goes_on=True):
        del run.writer._publish
        run.batch(1, [3])
    assert numbers(tmp_path / "out") == [1, 2, 3]


def test_a_checkpoint_of_before_there_were_owners_goes_on(tmp_path: Path) -> None:
    sink = Files(str(tmp_path / "out"), "json", overwrite=True)
    Run(tmp_path, "one", sink).batch(0, [1, 2])
    staged = tmp_path / "out/_staged/q-out-1/batch"
    staged.mkdir(parents=True)
    with held(sink, "one", goes_on=True):
        assert staged.exists(), "a commit record may promise it"
        assert numbers(tmp_path / "out") == [1, 2]


def test_who_begins_anew_is_refused_or_removes_what_there_is(tmp_path: Path) -> None:
    out = tmp_path / "out"
    with held(Files(str(out), "json"), "one"):
        Run(tmp_path, "one", Files(str(out), "json")).batch(0, [1, 2])
    (out / "_staged/q-one-out-1/batch").mkdir(parents=True)
    (out / "notes.txt").touch()
    words = "batch=0 exists already and this run starts from scratch"
    for refused in (Files(str(out)), Files(f"file://{out}")):
        with pytest.raises(InvalidInput, match=words), held(refused, "two"):
            pass
        with pytest.raises(InvalidInput, match=words):
            refuse_other_runs("out", refused)
    with held(Files(str(out), overwrite=True), "two"):
        assert sorted(one.name for one in out.iterdir()) == ["_penstock", "notes.txt"]


def test_batches_that_were_removed_are_gone_for_good_before_the_directory_is_taken(
    tmp_path: Path,
) -> None:
    """Else they could be back after a power cut, among this run's own."""
    out = tmp_path / "out"
    (out / "batch=7").mkdir(parents=True)
    steps: list[tuple[str, Path]] = []
    with (
        watched(lambda step: steps.append((step.what, step.file))),
        held(Files(str(out), overwrite=True), "one"),
    ):
        removed = steps.index(("remove", out / "batch=7"))
        synced = steps.index(("sync", out), removed)
        assert synced < steps.index(("rename", out / "_penstock/owner"))


def test_who_lost_its_directory_does_not_go_on_in_it(tmp_path: Path) -> None:
    sink = Files(str(tmp_path / "out"), "json", overwrite=True)
    with held(sink, "one"):
        pass
    with held(sink, "two"):
        Run(tmp_path, "two", sink).batch(0, [100])
    words = r"sink 'out': .*/out was taken over by another run"
    with pytest.raises(InvalidInput, match=words), held(sink, "one", goes_on=True):
        pass
    for batch in (tmp_path / "out").glob("batch=*"):
        durable_files.remove_tree(batch)
    with held(sink, "one", goes_on=True) as outputs:
        outputs.check({"out"})


def test_a_killed_run_of_the_same_checkpoint_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sink = Files(str(tmp_path / "out"))
    with held(sink, "one"):
        pass
    lock = tmp_path / "out/_penstock/lock"
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(lock)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    ) as other:  # fmt: skip
        assert other.stdout is not None
        assert other.stdout.readline() == "held\n"
        with pytest.raises(Unavailable, match="in use by another run"), held(sink, "two"):
            pass
        monkeypatch.setattr(ownership.time, "sleep", lambda _: (other.kill(), other.wait()))
        with held(sink, "one", goes_on=True):
            assert other.returncode == -signal.SIGKILL


def test_a_run_that_never_ends_is_not_waited_for_without_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ownership, "LIMIT_S", 0.0)
    sink = Files(str(tmp_path / "out"))
    with held(sink, "one"), pytest.raises(Unavailable, match="in use"), held(sink, "one"):
        pass


def test_a_file_system_without_locks_is_said_and_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def no_locks(*_: int) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(durable_files.fcntl, "flock", no_locks)
    sink = Files(str(tmp_path / "out"), overwrite=True)
    with held(sink, "one") as outputs:
        assert "cannot be locked: " in caplog.text
        refuse_other_runs("out", sink)
        with held(sink, "two"), pytest.raises(InvalidInput, match="taken over by another run"):
            outputs.check({"out"})


def test_in_a_remote_store_who_lost_the_directory_is_refused_at_its_next_batch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored_in(tmp_path, monkeypatch)
    sink = Files("store://out/", overwrite=True)
    with held(sink, "one") as outputs:
        outputs.check({"out"})
        for name in ("batch=0", "others"):
            (tmp_path / "out" / name).mkdir()
        with held(sink, "two") as others:
            others.check({"out"})
            outputs.check({"another sink"})
            with pytest.raises(InvalidInput, match="sink 'out': store://out was taken over"):
                outputs.check({"out"})
    assert sorted(one.name for one in (tmp_path / "out").iterdir()) == ["_penstock", "others"]


def test_a_damaged_name_is_refused_by_its_file(tmp_path: Path) -> None:
    sink = Files(str(tmp_path / "out"))
    with held(sink, "one"):
        (tmp_path / "out/_penstock/owner").write_text("{")
    with pytest.raises(InvalidInput, match="_penstock/owner is damaged"), held(sink, "one"):
        pass


def test_what_stragglers_staged_goes_at_the_next_start(tmp_path: Path) -> None:
    sink = Files(str(tmp_path / "out"), "json")
    rows = pa.RecordBatch.from_pydict({"n": [1]})
    with held(sink, "one"):
        run = Run(tmp_path, "one", sink)
        run.batch(0, [1, 2])
        late = file_sink.target(sink, "out", None, "q-one", 0)
        list(TaskWriter((late,), "tag")(iter([rows])))  # nobody waits for it any more
        assert list((tmp_path / "out/_staged").iterdir())
    with held(sink, "one", goes_on=True):
        assert list((tmp_path / "out/_staged").iterdir()) == []
    channel = ToChannel(str(tmp_path / "channel"))
    Run(tmp_path, "two", channel).batch(0, [1, 2])
    for writer in ("q-two", "q-other"):
        late = file_sink.target(channel, "out", None, writer, 0)
        list(TaskWriter((late,), "tag")(iter([rows])))
    (tmp_path / "two").rename(tmp_path / "before")
    Run(tmp_path, "two", channel)
    left = [one.name for one in (tmp_path / "channel/_staged").iterdir()]
    assert left == ["q-other-out-0"], "others' tasks may be at work"
