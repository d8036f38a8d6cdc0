"""`attach` in a session that was configured by somebody else, for other ends: docs/attach.md."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from clusters.manager import Manager
from clusters.trial import BUSY_PER_S, Followed
from penstock.spark.cluster.embedded import EmbeddedCluster

pytestmark = [pytest.mark.spark, pytest.mark.long]

FOREIGN = {
    # Spark's own dynamic allocation, as it is meant to be used: it would remove what is idle.
    "spark.dynamicAllocation.enabled": "true",
    "spark.dynamicAllocation.minExecutors": "1",
    "spark.dynamicAllocation.initialExecutors": "1",
    "spark.dynamicAllocation.maxExecutors": "3",
    "spark.dynamicAllocation.schedulerBacklogTimeout": "1s",
    "spark.dynamicAllocation.executorIdleTimeout": "3s",
    "spark.dynamicAllocation.shuffleTracking.enabled": "true",
    "spark.dynamicAllocation.shuffleTracking.timeout": "3s",
    # Tasks that seem slow are run twice.
    "spark.speculation": "true",
    "spark.speculation.multiplier": "1.1",
    "spark.speculation.quantile": "0.5",
    "spark.speculation.minTaskRuntime": "100ms",
    "spark.scheduler.mode": "FAIR",
    "spark.sql.adaptive.enabled": "true",
    "spark.sql.adaptive.streaming.stateless.enabled": "true",
    # Without a shuffle service of YARN's, Spark says so and goes on without.
    "spark.shuffle.push.enabled": "true",
}


@pytest.fixture(scope="module")
def manager() -> Iterator[Manager]:
    def nowhere(host: str) -> None:
        raise NotImplementedError(host)

    with EmbeddedCluster(slots=3) as running:
        yield Manager("embedded", running.settings, nowhere, nowhere)


def test_dynamic_allocation_speculation_fair_scheduler_and_adaptive_plans(
    manager: Manager, tmp_path: Path
) -> None:
    with Followed(manager, tmp_path, {"executors": (2, 3)}, FOREIGN) as run:
        driver = run.driver
        driver.until("two executors", lambda: len(driver.executors) >= 2)
        run.feeder.rate_per_s = BUSY_PER_S
        driver.until("three executors", lambda: len(driver.executors) == 3)
        for _ in range(4):
            run.until_results()
        run.settle()
        run.feeder.rate_per_s = 1.0  # so little that executors are idle for many timeouts
        asked = len(driver.steps)
        driver.until("twelve periods more", lambda: len(driver.steps) > asked + 12)
        assert len(driver.executors) >= 2, f"Spark's own allocation took some{driver.account()}"
        run.settle()
