"""Sessions for benchmarks: local ones, and those of an embedded cluster."""

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from pyspark.sql import SparkSession

from penstock.config import Settings
from penstock.spark.act.executors import executor_settings
from penstock.spark.cluster.embedded import EmbeddedCluster
from penstock.spark.run.place import build_session

SETTINGS = Settings()  # key groups and slots as whoever sets nothing has them


@contextmanager
def local_session(key_groups: int = 2) -> Iterator[SparkSession]:
    """Two slots, as everywhere in benchmarks; Spark's messages go to a file that is thrown away."""
    with tempfile.TemporaryDirectory(prefix="penstock-bench-") as folder:
        session = build_session(
            "benchmark", "local[2]", key_groups=key_groups, log_file=Path(folder) / "spark.log"
        )
        try:
            yield session
        finally:
            session.stop()


@contextmanager
def embedded_session(options: Mapping[str, str] | None = None) -> Iterator[SparkSession]:
    """A cluster of one executor, as `penstock run` starts it for one; `options` win."""
    with (
        tempfile.TemporaryDirectory(prefix="penstock-bench-") as folder,
        EmbeddedCluster(SETTINGS.slots, SETTINGS.executor_memory_mb) as cluster,
    ):
        extra = {
            **cluster.settings,
            **executor_settings(1, 1, SETTINGS.slots),
            "spark.executor.memory": f"{SETTINGS.executor_memory_mb}m",
            **(options or {}),
        }
        session = build_session(
            "benchmark", cluster.master_url, key_groups=SETTINGS.key_groups,
            log_file=Path(folder) / "spark.log", quick_start=True, extra=extra,
        )  # fmt: skip
        try:
            yield session
        finally:
            session.stop()
