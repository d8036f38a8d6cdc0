"""A run ends when its last batches went through, also where a query was started again for them."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, cast
from unittest.mock import Mock

import pytest
from pyspark.errors import PySparkException

from penstock.errors import InvalidTopology, PenstockError
from penstock.model.topology import Topology
from penstock.spark import handles
from penstock.spark.run import apart, together
from penstock.spark.run.apart import RunningApart
from penstock.spark.run.query_restarts import QueryRestarts
from penstock.spark.run.together import Pace, RunningTopology
from penstock.spark.sinks.batch_writer import BatchFailure

FULL = "java.io.IOException: No space left on device"
LIMIT_S = 60.0


class Query:
    """One whose last batch goes through, or fails."""

    name = "road"

    def __init__(self, *causes: str) -> None:
        self.causes, self.isActive, self.went_through = list(causes), True, False

    def processAllAvailable(self) -> None:
        if self.causes:
            self.isActive = False
            raise PySparkException(self.causes[-1])
        self.went_through = True

    def exception(self) -> PySparkException | None:
        return None if self.isActive else PySparkException(self.causes[-1])


class Clock:
    """Time that passes while somebody sleeps; queries are looked after meanwhile."""

    def __init__(self) -> None:
        self.now_s, self.meanwhile = 0.0, list[Callable[[], None]]()

    def monotonic(self) -> float:
        return self.now_s

    def sleep(self, seconds: float) -> None:
        self.now_s += seconds
        for look in self.meanwhile:
            look()


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    for module in (together, apart):
        monkeypatch.setattr(module, "time", made)
    return made


@pytest.fixture(params=[RunningTopology, RunningApart])
def running(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    """A run whose sources are worked off; its queries are yet to be set."""
    monkeypatch.setattr(handles, "failure_causes", lambda one: [] if one.isActive else one.causes)
    monkeypatch.setattr(handles, "last_batch", lambda one: -1)
    made = request.param(Topology("road", max_latency="5s"), Mock(), tmp_path / "state")
    monkeypatch.setattr(made, "finished", lambda: True)
    monkeypatch.setattr(made, "published", dict, raising=False)
    made._writers = [Mock(failure=None)]
    return made


def restarted_as(running: Any, clock: Clock, *queries: Query) -> None:
    """Begin with the first of these; each that fails becomes the next."""
    left = list(queries)
    running.queries = [left.pop(0)]

    def restart(place: int) -> bool:
        running.queries[place] = left.pop(0)
        return True

    running._restarts = QueryRestarts(
        lambda: running.queries, restart, lambda: True, clock.monotonic
    )
    clock.meanwhile.append(running._restarts.look)


@pytest.mark.parametrize("cause", [FULL, "java.io.EOFException: null"])
def test_a_last_batch_that_failed_is_waited_for_until_it_went_through(
    running: Any, clock: Clock, cause: str
) -> None:
    last = Query()
    restarted_as(running, clock, Query(cause), Query(cause), last)
    assert running.wait(LIMIT_S)
    assert last.went_through


def test_one_that_had_failed_before_the_run_was_found_to_be_over(
    running: Any, clock: Clock
) -> None:
    ended, last = Query(FULL), Query()
    ended.isActive = False
    restarted_as(running, clock, ended, last)
    assert running.wait(LIMIT_S)
    assert last.went_through


def test_what_it_is_not_brought_back_from_is_raised(running: Any, clock: Clock) -> None:
    restarted_as(running, clock, Query(FULL), Query("java.lang.ArithmeticException: / by zero"))
    with pytest.raises(PenstockError, match=r"query 'road' failed: .*/ by zero"):
        running.wait(LIMIT_S)


def test_a_wait_for_room_is_no_longer_than_the_wait_for_the_run(running: Any) -> None:
    running.queries = [Query(FULL)]  # nobody starts it again
    assert running.wait(LIMIT_S) is False


def test_a_query_that_is_about_to_end_is_not_yet_a_failure(
    running: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spark has the exception of a query before the query is no longer active."""
    ending = Mock(isActive=True, exception=lambda: PySparkException(FULL))
    monkeypatch.setattr(handles, "failure_causes", lambda _: [FULL])
    running.queries = [ending]
    running.raise_failure()


def test_a_run_over_what_is_there_waits_for_the_query_that_took_its_place(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    made = RunningTopology(
        Topology("road", max_latency="5s"), Mock(), tmp_path / "state", Pace(once=True)
    )
    monkeypatch.setattr(handles, "failure_causes", lambda _: [])
    made.queries = [cast(Any, Query())]
    monkeypatch.setattr(RunningTopology, "active", False)  # as in the moment it was replaced
    assert made.wait(LIMIT_S) is False


def test_a_start_that_fails_leaves_the_failure_that_ended_the_query(
    running: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = BatchFailure(3, OSError("the disk"), "out")
    running._writers[0].failure = first
    running._reports, running.built = Mock(), Mock(queries=[Mock()])
    running.queries = [Query()]
    monkeypatch.setattr(running, "_start_query", Mock(side_effect=InvalidTopology("no room")))
    with pytest.raises(InvalidTopology):
        running._restart(0)
    assert running._writers[0].failure is first
    monkeypatch.setattr(running, "_start_query", Mock())
    assert running._restart(0)
    assert running._writers[0].failure is None
