"""Waiting: for a condition, and for a running topology to end or to do some batches."""

import time
from collections.abc import Callable

from penstock.spark.run.together import RunningTopology

LIMIT_S = 120


def until(condition: Callable[[], object], limit_s: float = 90) -> None:
    """Wait for a condition, and fail when it does not come."""
    deadline = time.monotonic() + limit_s
    while not condition():
        assert time.monotonic() < deadline, "the condition did not come in time"
        time.sleep(0.05)


def run_to(running: RunningTopology, batches: int | None) -> None:
    """Wait for the batch of a number, or, with None, for the end; what failed is raised."""
    if batches is None:
        assert running.wait(LIMIT_S)
    else:
        query = running.queries[0]
        while query.isActive and (query.lastProgress or {"batchId": -1})["batchId"] < batches:
            query.awaitTermination(0.2)
    running.raise_failure()
