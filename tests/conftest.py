"""Which tests run and in which order, what they share, and what a unit test may not do."""

from __future__ import annotations

import os
import sys
import threading
import time
from typing import TYPE_CHECKING

import hypothesis
import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from spark.sessions import KeptSession

pytest.register_assert_rewrite("penstock.testing")

# How long an example takes says how busy the machine is, not whether the code is right.
hypothesis.settings.register_profile(
    "penstock", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
hypothesis.settings.load_profile("penstock")

# Drivers of tests live for seconds, also those in processes that tests start: the optimising
# compiler would take more time than it gives back.
os.environ.setdefault(
    "SPARK_SUBMIT_OPTS",
    "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:ReservedCodeCacheSize=240m",
)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--long", action="store_true", help="run the long forms of tests as well")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for item in items:
        if "long" in item.keywords and not config.getoption("--long"):
            item.add_marker(pytest.mark.skip(reason="takes minutes: run with --long"))
    turns: dict[object, int] = {}
    for item in items:
        turns[item.path] = min(turns.get(item.path, len(TURNS)), _turn(item))
    items.sort(key=lambda item: turns[item.path])


# Whole files in this order: those that take longest first, so that two processes end together, and
# those that can share a session behind each other.
TURNS = ("starts processes", "needs executors", "plain session", "session of ours")


def _turn(item: pytest.Item) -> int:
    names = getattr(item, "fixturenames", ())
    if item.get_closest_marker("spark") is None:
        return len(TURNS)
    if "cluster" in names:
        return TURNS.index("needs executors")
    if "spark" in names:
        return TURNS.index("plain session")
    return TURNS.index("session of ours" if "session" in names else "starts processes")


@pytest.fixture(scope="session")
def kept_session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KeptSession]:
    """The session of this process: one at a time, whoever asks for it."""
    from spark.sessions import KeptSession

    kept = KeptSession(tmp_path_factory.mktemp("spark") / "spark.log")
    yield kept
    kept.stop()


@pytest.fixture
def no_session(kept_session: KeptSession) -> None:
    """The JVM of this process without a session, for code that builds one itself."""
    kept_session.stop()


@pytest.fixture(autouse=True)
def _pure(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Unit tests start no Spark session and wait for no clock."""
    if "/tests/unit/" not in str(request.path):
        return

    sleep = time.sleep

    def refuse_to_sleep(seconds: float) -> None:
        # Threads that earlier Spark tests left in the process may sleep as they like.
        if threading.current_thread() is threading.main_thread():
            raise AssertionError("a unit test must not sleep")
        sleep(seconds)

    monkeypatch.setattr(time, "sleep", refuse_to_sleep)
    if "pyspark.sql" in sys.modules:
        from pyspark.sql import SparkSession

        def refuse_session(_builder: object) -> None:
            raise AssertionError("a unit test must not start a Spark session")

        monkeypatch.setattr(SparkSession.Builder, "getOrCreate", refuse_session)
