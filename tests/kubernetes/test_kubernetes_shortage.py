"""A cluster that gives fewer pods than it is asked for: said, waited out, and no run ends of it."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from clusters.trial import BUSY_PER_S, CALM_PER_S, Followed
from kubernetes.cluster import NAMESPACE, Cluster

pytestmark = pytest.mark.spark
QUOTAS = f"/api/v1/namespaces/{NAMESPACE}/resourcequotas"


def until_refused(run: Followed, words: str) -> None:
    run.driver.until(
        f"an act that says {words!r}",
        lambda: any(not act["done"] and words in act["detail"] for act in run.driver.acts),
    )


def test_a_full_quota_and_then_full_machines(cluster: Cluster, tmp_path: Path) -> None:
    """One query, which is in want of executors all the time and gets them in the end."""
    with Followed(cluster.manager, tmp_path) as run:
        run.driver.until("the first executor", lambda: run.driver.executors)
        run.feeder.rate_per_s = CALM_PER_S
        run.until_results()
        with full_quota(cluster, run):
            run.feeder.rate_per_s = BUSY_PER_S
            until_refused(run, "API server refused pods")
            run.until_results()
            assert len(run.driver.executors) == 1
            cluster.cordon(True)
        try:
            run.driver.until("pods that wait", lambda: cluster.executors("Pending"))
            until_refused(run, "nodes are available")
            run.driver.until("their withdrawal", lambda: not cluster.executors("Pending"))
            until_refused(run, "more are asked for again in")
            assert len(run.driver.executors) == 1
            assert len(cluster.executors("Running")) == 1
        finally:
            cluster.cordon(False)
        run.driver.until("more executors", lambda: len(run.driver.executors) >= 2)
        run.settle()


@contextmanager
def full_quota(cluster: Cluster, run: Followed) -> Iterator[None]:
    """A quota of the one pod there is."""
    quota = {"metadata": {"name": "few"}, "spec": {"hard": {"pods": "1"}}}
    cluster.plane.admin.post(QUOTAS, quota)
    try:
        run.driver.until(
            "the quota to be in force",
            lambda: cluster.plane.admin.get(f"{QUOTAS}/few").get("status", {}).get("hard"),
        )
        yield
    finally:
        cluster.plane.admin.delete(f"{QUOTAS}/few")


def test_the_executor_of_a_lost_node_is_replaced(cluster: Cluster, tmp_path: Path) -> None:
    """Its pod stays on the books of Kubernetes, and Spark takes it for running."""
    with Followed(cluster.manager, tmp_path, {"executors": (2, 2)}) as run:
        run.driver.until("two executors", lambda: len(run.driver.executors) == 2)
        run.feeder.rate_per_s = CALM_PER_S
        run.until_results()
        executor, host = sorted(run.driver.executors.items())[-1]
        cluster.agent.lose(cluster.agent.node_at(host))
        try:
            run.driver.until(
                "another in its place",
                lambda: len(run.driver.executors.keys() - {executor}) == 2,
            )
        finally:
            cluster.agent.find(cluster.agent.node_at(host))
        run.settle()
