"""Which ends of a query it is brought back from."""

import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast
from unittest.mock import Mock

import pytest

from penstock.errors import InvalidTopology
from penstock.spark import handles
from penstock.spark.checkpoint import room
from penstock.spark.run.query_restarts import MOST_RESTARTS, POLL_S, QueryRestarts

FULL = "java.io.IOException: No space left on device"


class Ended:
    """A query that is no more."""

    isActive = False

    def __init__(self, name: str = "road") -> None:
        self.name = name
        self.batch = -1  # the newest that went through


class Ends:
    """Queries that end again and again, for whatever reason."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *causes: str) -> None:
        self.causes = list(causes)
        monkeypatch.setattr(handles, "failure_causes", lambda query: self.causes)
        monkeypatch.setattr(handles, "last_batch", lambda query: query.batch)
        self.queries, self.started, self.room = [Ended("road"), Ended("toll")], list[int](), True
        self.now_s, self.broken = 0.0, list[int]()  # queries whose start fails
        self.while_starting: Callable[[], None] = lambda: None
        self.restarts = QueryRestarts(
            cast(Callable[[], Any], lambda: self.queries), self._restart, lambda: self.room,
            lambda: self.now_s,
        )  # fmt: skip

    def _restart(self, place: int) -> bool:
        self.started.append(place)
        self.while_starting()
        if place in self.broken:
            raise InvalidTopology("it cannot be started")
        return True

    def look_for(self, seconds: float) -> None:
        until_s = self.now_s + seconds
        while self.now_s < until_s:
            self.restarts.look()
            self.now_s += POLL_S

    def will_restart(self, place: int = 0) -> bool:
        return self.restarts.will_restart(cast(Any, self.queries[place]))


@pytest.mark.parametrize(
    ("causes", "again"),
    [
        (["x.Outer: failed", "java.io.EOFException: null"], True),
        (["java.net.SocketException: Broken pipe"], True),
        (
            [
                "java.net.SocketTimeoutException: Timed out while waiting for the Python worker to "
                "connect back"
            ],
            True,
        ),
        (["x.Outer: java.io.EOFException", "java.lang.ArithmeticException: / by zero"], False),
        ([], False),
    ],
)
def test_a_runner_that_died_or_came_too_late_is_not_the_end(
    monkeypatch: pytest.MonkeyPatch, causes: list[str], again: bool
) -> None:
    ends = Ends(monkeypatch, *causes)
    assert ends.will_restart() is again
    ends.restarts.stop()
    assert not ends.will_restart()


def test_a_query_that_ends_again_and_again_is_given_up_and_others_are_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ends = Ends(monkeypatch, "java.io.EOFException: null")
    both, ends.queries = ends.queries, [Ended("road")]
    for _ in range(MOST_RESTARTS):
        ends.restarts.look()
    assert len(ends.started) == MOST_RESTARTS
    assert not ends.will_restart()
    ends.queries = both
    assert ends.will_restart(1)


@pytest.mark.parametrize("cause", ["java.io.EOFException: null", FULL])
def test_a_start_that_fails_is_an_attempt_and_keeps_no_other_query_waiting(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, cause: str
) -> None:
    ends = Ends(monkeypatch, cause)
    ends.broken = [0]
    ends.restarts.look()
    assert ends.started == [0, 1]
    assert "query road could not be looked at or started again: InvalidTopology: it " in caplog.text
    assert ends.will_restart()
    ends.look_for(601.0 if cause == FULL else POLL_S * MOST_RESTARTS)
    assert not ends.will_restart()
    assert ends.started.count(0) < 20


def test_the_last_attempt_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    ends = Ends(monkeypatch, "java.io.EOFException: null")
    seen: list[bool] = []
    ends.queries = [Ended("road")]
    ends.while_starting = lambda: seen.append(ends.will_restart())
    ends.look_for(POLL_S * MOST_RESTARTS)
    assert seen == [True] * MOST_RESTARTS


@pytest.mark.parametrize(
    "causes",
    [
        ["x.StreamingQueryException: ended", FULL],
        ["py4j.Py4JException: OSError: [Errno 28] No space left on device", "x.Inner: stopped"],
        ["java.io.IOException: Disk quota exceeded"],
        ["java.io.FileNotFoundException: /data/.1.tmp (No space left on device)"],
        ["java.nio.file.FileSystemException: /data/1: No space left on device"],
        ["org.rocksdb.RocksDBException: IO error: No space left on device: While appending"],
        ["x.SparkException: Job aborted: Lost task 0.0 (far executor 1): " + FULL],
        ["x.PythonException: Traceback:\n  File \"a.py\", line 1\nOSError: [Errno 28] Error "
         "writing bytes to file. Detail: [errno 28] No space left on device"],
        ["x.PythonException: penstock.errors.Unavailable: no log: [Errno 122] Disk quota exceeded"],
        ["x.PythonException: Traceback:\npenstock.spark.checkpoint.durable_files.StorageFailure: "
         "cannot write /c/1.new: No space left on device; free some space, and start again."],
    ],
)  # fmt: skip
def test_on_a_full_disk_a_query_waits_for_room_and_goes_on(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, causes: list[str]
) -> None:
    ends = Ends(monkeypatch, *causes)
    ends.room = False
    ends.look_for(10.0)
    assert ends.will_restart()
    assert ends.started == []
    assert [record.message for record in caplog.records] == [
        f"query {name}: a disk is full; the query goes on as soon as there is room, and fails if "
        "there is none within 600 s"
        for name in ("road", "toll")
    ]
    ends.room = True
    ends.look_for(1.5)
    assert ends.started[:2] == [0, 1]


@pytest.mark.parametrize(
    "said",
    [
        "ValueError: the upload said: No space left on device",
        "ValueError: OSError: [Errno 28] No space left on device",
        "shop.orders.Refused: No space left on device",
        'Traceback:\n    raise ValueError("OSError: [Errno 28] No space left on device")\nKeyError',
    ],
)
def test_who_quotes_a_full_disk_has_failed_himself(
    monkeypatch: pytest.MonkeyPatch, said: str
) -> None:
    assert not Ends(monkeypatch, f"org.apache.spark.PythonException: {said}").will_restart()


def test_a_disk_that_stays_full_ends_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    ends = Ends(monkeypatch, FULL)
    ends.room = False
    ends.look_for(599.0)
    assert ends.will_restart()
    ends.look_for(2.0)
    assert not ends.will_restart()
    assert ends.started == []


def test_a_full_disk_that_nobody_can_ask_is_tried_less_and_less_often_for_ten_minutes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ends = Ends(monkeypatch, FULL)
    del ends.queries[1]
    ends.look_for(10.0)
    assert len(ends.started) == 4, "at 0, 1, 3 and 7 s"
    ends.look_for(589.0)
    assert ends.will_restart()
    assert MOST_RESTARTS < len(ends.started) < 20
    ends.look_for(2.0)
    assert not ends.will_restart()


def test_a_query_that_came_back_has_the_whole_time_again(monkeypatch: pytest.MonkeyPatch) -> None:
    ends = Ends(monkeypatch, FULL)
    ends.look_for(500.0)
    up = Mock(isActive=True, batch=3)
    up.name = "road"
    ended, ends.queries = ends.queries, [up]
    ends.look_for(100.0)
    ends.queries, ends.started, ends.room = ended, [], False
    ends.look_for(599.0)
    assert ends.will_restart()
    ends.room = True
    ends.look_for(1.5)
    assert ends.started[0] == 0


def test_other_ends_are_not_counted_with_those_of_a_full_disk(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ends = Ends(monkeypatch, FULL)
    ends.look_for(595.0)
    ends.causes = ["java.io.EOFException: null"]
    assert ends.will_restart()


def test_room_is_found_by_writing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert room.has_room(tmp_path)
    assert list(tmp_path.iterdir()) == []

    def full(_: int) -> None:
        raise OSError(errno.EDQUOT, os.strerror(errno.EDQUOT))

    monkeypatch.setattr(os, "fsync", full)
    assert not room.has_room(tmp_path)


def test_every_folder_needs_room_also_one_that_is_not_there_yet(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Path] = []
    monkeypatch.setattr(room, "has_room", lambda one: asked.append(one) or one.name != "full")
    for name in ("state", "full"):
        (tmp_path / name).mkdir()
    assert room.have_room([tmp_path / "state", tmp_path / "out" / "tolls"])
    assert asked == [tmp_path / "state", tmp_path]
    assert not room.have_room([tmp_path / "state", tmp_path / "full" / "tolls"])
