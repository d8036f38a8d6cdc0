"""One Spark session per test file, gone when the file is done."""

import os
import sys
from collections.abc import Callable, Iterator

import pytest
from pyspark.sql import SparkSession

from penstock.spark.cluster.embedded import start_driver_jvm
from penstock.spark.run.session import build_session as penstock_session

COMMON = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.memory": "512m",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
    ),
}


def build_session(**settings: str) -> SparkSession:
    """A session with the settings all Spark tests share, and more."""
    return session_of({"spark.master": "local[2]", **COMMON, **settings})


def session_of(settings: dict[str, str]) -> SparkSession:
    # Workers would take the python3 of the PATH, which has no penstock.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    start_driver_jvm(settings)
    builder = SparkSession.builder
    for key, value in settings.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    return session


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    """A local session for the tests of one file."""
    session = build_session()
    yield session
    session.stop()


@pytest.fixture(scope="module")
def session(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[SparkSession]:
    """A local session of Penstock's own, with as many KEY_GROUPS as the file says."""
    log_file = tmp_path_factory.mktemp("log") / "spark.log"
    made = penstock_session(
        "tests", key_groups=request.module.KEY_GROUPS, log_file=log_file, quick_start=True
    )
    yield made
    made.stop()


@pytest.fixture(scope="module")
def new_session() -> Iterator[Callable[[dict[str, str]], SparkSession]]:
    """A function from settings to a session, for files that need their own; one at a time."""
    made: list[SparkSession] = []

    def build(settings: dict[str, str]) -> SparkSession:
        made.append(session_of({**COMMON, **settings}))
        return made[-1]

    yield build
    for session in made:
        session.stop()
