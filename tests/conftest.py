"""Which tests run, and what a unit test may not do."""

import sys
import threading
import time

import hypothesis
import pytest

pytest.register_assert_rewrite("penstock.testing")

# How long an example takes says how busy the machine is, not whether the code is right.
hypothesis.settings.register_profile(
    "penstock", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
hypothesis.settings.load_profile("penstock")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--long", action="store_true", help="run the long forms of tests as well")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for item in items:
        if "long" in item.keywords and not config.getoption("--long"):
            item.add_marker(pytest.mark.skip(reason="takes minutes: run with --long"))


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
