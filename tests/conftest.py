"""Which tests run, and what a unit test may not do."""

import sys
import time

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--long", action="store_true", help="run the long forms of tests as well")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("--long"):
        return
    for item in items:
        if "long" in item.keywords:
            item.add_marker(pytest.mark.skip(reason="takes minutes: run with --long"))


@pytest.fixture(autouse=True)
def _pure(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Unit tests start no Spark session and wait for no clock."""
    if "/tests/unit/" not in str(request.path):
        return

    def refuse_to_sleep(_seconds: float) -> None:
        raise AssertionError("a unit test must not sleep")

    monkeypatch.setattr(time, "sleep", refuse_to_sleep)
    if "pyspark.sql" in sys.modules:
        from pyspark.sql import SparkSession

        def refuse_session(_builder: object) -> None:
            raise AssertionError("a unit test must not start a Spark session")

        monkeypatch.setattr(SparkSession.Builder, "getOrCreate", refuse_session)
