"""The admission log: what Spark may ask for again is there, and a torn tail is not."""

import errno
import os
from contextlib import closing, suppress
from pathlib import Path

import numpy as np
import pytest

from penstock.spark.sources import log as log_module
from penstock.spark.sources.backends.backend import Positions, positions
from penstock.spark.sources.entry import Batch, Joined, no_one
from penstock.spark.sources.log import AdmissionLog, DamagedLog, new_log
from penstock.spark.sources.streams import StreamTable
from reliability.crash_points import At, Stopped, stop, watched


def batch(seq: int, joined: Joined | None = None) -> Batch:
    """Stream 0 goes from 10 (seq - 1) to 10 seq, with a major part that needs 64 bits."""
    start, end = np.array([10 * (seq - 1)]), np.array([10 * seq])
    major = np.array([2**62])
    return Batch(
        seq, np.array([0]), np.array([3]), Positions(major, start), Positions(major, end),
        np.array([10]), joined or no_one(),
    )  # fmt: skip


def written(folder: Path, entries: int) -> None:
    log = AdmissionLog(folder)
    log.open(StreamTable().snapshot(0), 0)
    log.append(batch(1, Joined(["a"], positions([0]), np.array([5.0]))))
    for seq in range(2, entries + 1):
        log.append(batch(seq))
    log.close()


def restored(folder: Path, seq: int) -> tuple[AdmissionLog, StreamTable]:
    log, table = AdmissionLog(folder), StreamTable()
    for entry in log.open(table.snapshot(0), seq):
        table.restore(entry)
    return log, table


def test_starts_before_there_is_anything_to_read_leave_one_log(tmp_path: Path) -> None:
    for _ in range(5):
        log = new_log(tmp_path)
        log.open(StreamTable().snapshot(0), 0)
        log.close()
    assert [one.name for one in tmp_path.iterdir()] == ["0"]
    with closing(new_log(tmp_path)) as one, closing(new_log(tmp_path)) as other:
        assert [one.directory.name, other.directory.name] == ["0", "1"], "a source read twice"


def test_a_new_log_begins_with_what_is_there_now(tmp_path: Path) -> None:
    old = StreamTable()
    old.restore(batch(1, Joined(["gone"], positions([0]), np.array([5.0]))))
    with closing(new_log(tmp_path)) as log:
        log.open(old.snapshot(0), 0)
    table = StreamTable()
    with closing(new_log(tmp_path)) as log:
        for entry in log.open(StreamTable().snapshot(0), 0):
            table.restore(entry)
    assert table.names == []


def test_a_log_that_an_offset_may_name_is_never_taken(tmp_path: Path) -> None:
    """Killed at any step: what was admitted stays, whether or not Spark came to know of it."""
    admitted = 0
    for number in range(200):
        logs, known = tmp_path / str(number), 0
        with suppress(Stopped), watched(At(number, stop)), closing(new_log(logs)) as log:
            table = StreamTable()
            log.open(table.snapshot(0), 0)
            for seq in (1, 2, 3):
                one = batch(
                    seq, Joined(["a"], positions([0]), np.array([5.0])) if seq == 1 else None
                )
                log.append(one)
                known = seq
                table.restore(one)
                if seq == 2:
                    log.roll(table.snapshot(2))
            log.committed(3)
            break
        admitted += known > 0
        with closing(new_log(logs)) as other:
            other.open(StreamTable().snapshot(0), 0)
            assert not known or other.directory.name == "1"
        if known:
            again, _ = restored(logs / "0", known)
            assert known in again.recent or known == 2  # where the next segment begins
            again.close()
        assert len([one for one in logs.iterdir() if one.is_dir()]) <= 2
    assert admitted > 10


def test_a_log_with_part_of_an_entry_is_left_alone(tmp_path: Path) -> None:
    """It may be one that an offset names, and damaged."""
    written(tmp_path / "0", 1)
    (segment,) = (tmp_path / "0").glob("*.segment")
    with closing(new_log(tmp_path)) as log:
        assert log.directory.name == "1"
    os.truncate(segment, segment.stat().st_size - 3)
    with closing(new_log(tmp_path)) as log:
        assert log.directory.name == "1"


def test_reopened_log_has_the_same_ranges(tmp_path: Path) -> None:
    written(tmp_path, 4)
    log, table = restored(tmp_path, 4)
    assert table.names == ["a"]
    assert table.position.minor.tolist() == [40]
    assert table.lane.tolist() == [3]
    again = log.recent[4]
    assert again.start.minor.tolist() == [30]
    assert again.end.major.tolist() == [2**62]
    log.close()


def test_entry_that_spark_does_not_know_is_cut_off(tmp_path: Path) -> None:
    written(tmp_path, 4)
    log, table = restored(tmp_path, 2)
    assert table.position.minor.tolist() == [20]
    log.append(batch(3))
    log.close()
    log, table = restored(tmp_path, 3)
    assert sorted(log.recent) == [1, 2, 3]
    log.close()


@pytest.mark.parametrize("lost", [1, 7, 40])
def test_torn_tail_is_no_entry(tmp_path: Path, lost: int) -> None:
    written(tmp_path, 3)
    segment = next(tmp_path.glob("*.segment"))
    segment.write_bytes(segment.read_bytes()[:-lost])
    log, table = restored(tmp_path, 2)
    assert table.position.minor.tolist() == [20]
    log.close()
    with pytest.raises(DamagedLog, match="holds no entry 3, which Spark refers to"):
        restored(tmp_path, 3)


def test_last_entry_of_a_segment_can_be_read_again(tmp_path: Path) -> None:
    written(tmp_path, 3)
    log, table = restored(tmp_path, 3)
    log.roll(table.snapshot(3))
    log.close()
    log, table = restored(tmp_path, 3)
    assert log.recent[3].end.minor.tolist() == [30]
    log.append(batch(4))
    log.close()
    log, table = restored(tmp_path, 4)
    assert table.position.minor.tolist() == [40]
    log.close()


def test_committed_segments_are_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_module, "MOST_ENTRIES", 3)
    log, table = AdmissionLog(tmp_path), StreamTable()
    log.open(table.snapshot(0), 0)
    for seq in range(1, 13):
        joined = Joined(["a"], positions([0]), np.array([5.0])) if seq == 1 else no_one()
        made = batch(seq, joined)
        log.append(made)
        table.restore(made)
        if log.full:
            log.roll(table.snapshot(seq))
        log.committed(seq - 1)
    assert len(list(tmp_path.glob("*.segment"))) <= 2
    assert sorted(log.recent) == [12]
    log.close()
    log, table = restored(tmp_path, 12)
    assert table.position.minor.tolist() == [120]
    log.close()


def test_a_log_that_lacks_the_wanted_entry_is_left_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Later segments may be all that is left to a person who mends it."""
    written(tmp_path, 3)
    log, table = restored(tmp_path, 3)
    log.roll(table.snapshot(3))
    log.append(batch(4))
    log.close()
    first, later = sorted(tmp_path.glob("*.segment"))
    first.write_bytes(first.read_bytes()[:-7])
    before = later.read_bytes()
    log = AdmissionLog(tmp_path)
    with pytest.raises(DamagedLog, match="holds no entry 3"):
        log.open(StreamTable().snapshot(0), 3)
    log.close()
    assert later.read_bytes() == before


def test_an_entry_that_could_not_be_written_whole_does_not_spoil_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written(tmp_path, 2)
    log, _ = restored(tmp_path, 2)

    write = os.write
    half: list[int] = []

    def half_then_full(file: int, data: bytes) -> int:
        if half:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        half.append(1)
        return write(file, bytes(data)[: len(data) // 2])

    with monkeypatch.context() as patched:
        patched.setattr(os, "write", half_then_full)
        with pytest.raises(OSError, match="No space left"):
            log.append(batch(3))
    log.append(batch(3))
    log.close()
    log, table = restored(tmp_path, 3)
    assert table.position.minor.tolist() == [30]
    log.close()
