"""Dead letters: kept for a time and up to a size, and counted whatever has gone."""

import os
from pathlib import Path

import pytest

from penstock.spark.checkpoint import durable_files
from penstock.spark.sources.backends.backend import Malformed
from penstock.spark.sources.dead_letters import (
    count_letters,
    forget_letters,
    letter_file,
    letter_files,
    read_gone,
    read_letters,
    write_letters,
)

LOG = 7


def put(folder: Path, seq: int, records: int, at_s: float = 1000.0) -> Path:
    file = letter_file(folder, LOG, seq, 0)
    write_letters(file, [Malformed("s", str(n), "bad", b"x" * 100) for n in range(records)])
    os.utime(file, (at_s, at_s))
    return file


def counted(folder: Path) -> int:
    gone = read_gone(folder, LOG)
    return gone.records + sum(
        count_letters(file) for seq, file in letter_files(folder, LOG) if seq > gone.upto
    )


def test_old_ones_go_and_their_count_stays(tmp_path: Path) -> None:
    for seq in range(6):
        put(tmp_path, seq, 10 + seq, at_s=1000.0 * seq)
    gone = forget_letters(tmp_path, LOG, 5, oldest_s=2500.0, most_bytes=10**9)
    assert (gone.upto, gone.records) == (2, 33)
    assert len(read_letters(tmp_path)) == 13 + 14 + 15
    assert counted(tmp_path) == sum(range(10, 16))


def test_the_newest_stay_within_the_size(tmp_path: Path) -> None:
    size, *_ = [put(tmp_path, seq, 50).stat().st_size for seq in range(10)]
    forget_letters(tmp_path, LOG, 9, oldest_s=0.0, most_bytes=3 * size)
    assert sorted(seq for seq, _ in letter_files(tmp_path, LOG)) == [7, 8, 9]
    assert counted(tmp_path) == 500


def test_what_is_not_committed_stays(tmp_path: Path) -> None:
    for seq in range(4):
        put(tmp_path, seq, 1, at_s=0.0)
    forget_letters(tmp_path, LOG, 1, oldest_s=10.0, most_bytes=10**9)
    assert sorted(seq for seq, _ in letter_files(tmp_path, LOG)) == [2, 3]


def test_a_stop_at_any_step_neither_forgets_nor_counts_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Stop(BaseException):
        pass

    for stop_at in range(40):
        folder, steps = tmp_path / str(stop_at), []
        for seq in range(5):
            put(folder, seq, 2, at_s=100.0 * seq)

        def stop(step: durable_files.Step, at: int = stop_at, steps: list[object] = steps) -> None:
            steps.append(step)
            if len(steps) > at:
                raise Stop

        monkeypatch.setattr(durable_files, "on_step", stop)
        try:
            forget_letters(folder, LOG, 4, oldest_s=250.0, most_bytes=10**9)
            stopped = False
        except Stop:
            stopped = True
        monkeypatch.setattr(durable_files, "on_step", None)
        assert counted(folder) == 10
        forget_letters(folder, LOG, 4, oldest_s=250.0, most_bytes=10**9)
        assert counted(folder) == 10
        assert sorted(seq for seq, _ in letter_files(folder, LOG)) == [3, 4]
        if not stopped:
            return
    pytest.fail("it never came to its end")
