"""Sessions for Spark tests, shared by all files of a test process that can live with the same."""

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from penstock.spark.cluster.embedded import EmbeddedCluster
from penstock.spark.run.place import build_session
from spark.sessions import KeptSession, plain_session


@pytest.fixture(scope="session")
def cluster(kept_session: KeptSession) -> Iterator[EmbeddedCluster]:
    """A cluster for all files that need executors; each with a session of its own on it."""
    with EmbeddedCluster(slots=6) as running:
        yield running
        kept_session.stop()  # a driver whose master is gone ends its process


@pytest.fixture(scope="module")
def spark(kept_session: KeptSession) -> Iterator[SparkSession]:
    """A local session that has nothing of Penstock."""
    with kept_session.lend("plain", lambda: plain_session({"spark.master": "local[2]"})) as lent:
        yield lent


@pytest.fixture(scope="module")
def session(request: pytest.FixtureRequest, kept_session: KeptSession) -> Iterator[SparkSession]:
    """A local session of Penstock's own, with as many KEY_GROUPS as the file says, or 2.

    One that says APART has more processors than the machine has cores, shared out among queries.
    """
    apart = getattr(request.module, "APART", False)

    def build() -> SparkSession:
        return build_session(
            "tests", "local[6]" if apart else "local[2]", key_groups=2,
            log_file=kept_session.log_file, quick_start=True,
            extra={"spark.scheduler.mode": "FAIR"} if apart else None,
        )  # fmt: skip

    key_groups = {"spark.sql.shuffle.partitions": str(getattr(request.module, "KEY_GROUPS", 2))}
    with kept_session.lend("apart" if apart else "penstock", build, key_groups) as lent:
        yield lent
