"""Which ends of a query it is brought back from."""

import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest

from penstock.spark import handles
from penstock.spark.checkpoint import room
from penstock.spark.run import query_restarts
from penstock.spark.run.query_restarts import MOST_RESTARTS, QueryRestarts


class Ended:
    """A query that is no more."""

    isActive = False

    def __init__(self, name: str = "road") -> None:
        self.name = name


class Ends:
    """Queries that end again and again, for whatever reason."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *causes: str) -> None:
        monkeypatch.setattr(handles, "failure_causes", lambda query: list(causes))
        self.queries, self.started, self.room = [Ended("road"), Ended("toll")], list[int](), True
        self.restarts = QueryRestarts(
            cast(Callable[[], Any], lambda: self.queries), self._restart, lambda: self.room
        )

    def _restart(self, place: int) -> bool:
        self.started.append(place)
        return True

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


@pytest.mark.parametrize(
    "causes",
    [
        ["x.StreamingQueryException: ended", "java.io.IOException: No space left on device"],
        ["py4j.Py4JException: OSError: [Errno 28] No space left on device", "x.Inner: stopped"],
        ["java.io.IOException: Disk quota exceeded"],
    ],
)
def test_on_a_full_disk_a_query_waits_for_room_and_goes_on(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, causes: list[str]
) -> None:
    ends = Ends(monkeypatch, *causes)
    ends.room = False
    for _ in range(3):
        ends.restarts.look()
        assert ends.will_restart()
    assert ends.started == []
    assert [record.message for record in caplog.records] == [
        f"query {name}: the disk of its checkpoint is full; it goes on as soon as there is room, "
        "and fails if there is none within 600 s"
        for name in ("road", "toll")
    ]
    ends.room = True
    ends.restarts.look()
    assert ends.started == [0, 1]


def test_a_disk_that_stays_full_ends_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    ends = Ends(monkeypatch, "java.io.IOException: No space left on device")
    ends.room = False
    ends.restarts.look()
    monkeypatch.setattr(query_restarts, "ROOM_LIMIT_S", 0.0)
    assert not ends.will_restart()


def test_room_is_found_by_writing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert room.has_room(tmp_path)
    assert list(tmp_path.iterdir()) == []

    def full(_: int) -> None:
        raise OSError(errno.EDQUOT, os.strerror(errno.EDQUOT))

    monkeypatch.setattr(os, "fsync", full)
    assert not room.has_room(tmp_path)
