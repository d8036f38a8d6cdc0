"""A running topology waited for: to its end, or for some batches."""

from penstock.spark.run.together import RunningTopology

LIMIT_S = 120


def run_to(running: RunningTopology, batches: int | None) -> None:
    """Wait for the batch of a number, or, with None, for the end; what failed is raised."""
    if batches is None:
        assert running.wait(LIMIT_S)
    else:
        query = running.queries[0]
        while query.isActive and (query.lastProgress or {"batchId": -1})["batchId"] < batches:
            query.awaitTermination(0.2)
    running.raise_failure()
