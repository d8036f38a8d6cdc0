"""Waiting: for a condition, and for a running topology to end or to do some batches."""

import time
from collections.abc import Callable
from functools import partial

from pyspark.sql import SparkSession
from pyspark.sql.streaming import StreamingQuery

from penstock.spark import handles
from penstock.spark.run.together import RunningTopology

LIMIT_S = 300  # only against what never ends: a machine may be much slower than this one


def until(condition: Callable[[], object], limit_s: float = LIMIT_S, poll_s: float = 0.05) -> None:
    """Wait for a condition, and fail when it does not come."""
    deadline = time.monotonic() + limit_s
    while not condition():
        assert time.monotonic() < deadline, "the condition did not come in time"
        time.sleep(poll_s)


def settled(running: RunningTopology) -> None:
    """Wait until all is known of the batches that ended: reports and jobs come as events."""
    running.settle(LIMIT_S)
    for query in running.queries:
        until(partial(_jobs_are_known, running.session, query))


def _jobs_are_known(session: SparkSession, query: StreamingQuery) -> bool:
    jobs = handles.jobs_of_group(session, str(query.runId))
    ended = {job.batch_id for job in jobs if job.completed_ms is not None}
    return {report.batchId for report in query.recentProgress if report.numInputRows} <= ended


def run_to(running: RunningTopology, batches: int | None) -> None:
    """Wait for the batch of a number, or, with None, for the end; what failed is raised."""
    if batches is None:
        assert running.wait(LIMIT_S)
    else:
        query = running.queries[0]
        while query.isActive and (query.lastProgress or {"batchId": -1})["batchId"] < batches:
            query.awaitTermination(0.2)
    running.raise_failure()
