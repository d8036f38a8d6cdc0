"""What experiments on Spark share: a session, and a line about each step.

Workers can import neither experiments nor examples, so what these hand to Spark goes by value.
"""

import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from pyspark.cloudpickle import register_pickle_by_value
from pyspark.sql import SparkSession

import examples
import experiments
from penstock.spark.run.place import build_session

for folder in (examples, experiments):
    register_pickle_by_value(folder)  # type: ignore[no-untyped-call]


@contextmanager
def spark_session(
    name: str, master: str, extra: dict[str, str] | None = None, quick_start: bool = False
) -> Iterator[SparkSession]:
    """A local session; Spark's messages go to a file that is thrown away."""
    with tempfile.TemporaryDirectory(prefix="penstock-", ignore_cleanup_errors=True) as folder:
        session = build_session(
            name, master, log_file=Path(folder) / "spark.log", quick_start=quick_start, extra=extra
        )
        try:
            yield session
        finally:
            session.stop()


def reporter(paper: str) -> Callable[[str], None]:
    """A function that says on stderr how far an experiment is."""

    def say(what: str) -> None:
        print(f"{paper} on Spark: {what}", file=sys.stderr, flush=True)

    return say
