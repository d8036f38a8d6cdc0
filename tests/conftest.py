"""Which tests run and in which order, what they share, and what a unit test may not do."""

from __future__ import annotations

import os
import signal
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

# A shell starts what it runs in the background with Ctrl-C ignored, and so would every program that
# a test starts from there and ends with it.
if (
    signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    and threading.current_thread() is threading.main_thread()
):
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Hundreds of Python processes are started here. Where none of them may keep what it compiled, each
# compiles the package anew, and pytest all tests at every run.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

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
    used: dict[object, set[str]] = {}
    for item in items:
        used.setdefault(item.path, set()).update(_needs(item))
    items.sort(key=lambda item: _turn(used[item.path]))


def _needs(item: pytest.Item) -> set[str]:
    return {"Spark"} | set(item.fixturenames) if item.get_closest_marker("spark") else set()  # type: ignore[attr-defined]


def _turn(needs: set[str]) -> int:
    """Whole files: those that take longest first, so that processes end together; see sessions.py.

    First those that start processes, then those with executors, then those that can share a plain
    session, then those that can share one of ours.
    """
    for turn, fixture in enumerate(("cluster", "spark", "session"), 1):
        if fixture in needs:
            return turn
    return 0 if needs else 4


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
