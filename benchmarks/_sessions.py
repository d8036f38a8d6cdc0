"""A local session for benchmarks, and queries run to their end."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pyspark.sql import SparkSession

from penstock.spark.session import build_session


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
