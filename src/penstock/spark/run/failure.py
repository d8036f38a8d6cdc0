"""Why a query failed, as one sentence: the batch, the operator, and the user's own line."""

from penstock.errors import PenstockError
from penstock.model.topology import Topology
from penstock.model.user_code import holds_line
from penstock.spark.handles.messages import Failure, failure_of
from penstock.spark.sinks.batch_writer import BatchFailure


def query_failure(
    query: str, error: BaseException, batch: BatchFailure | None, topology: Topology
) -> PenstockError:
    """What to raise; `batch` is what its writer saw, if it failed while a batch was written."""
    found = failure_of(error if batch is None else batch.error)
    where = "" if batch is None else f" in batch {batch.batch_id}"
    sink = "" if batch is None or batch.sink is None else f"sink {batch.sink!r}: function: "
    whose = sink or _operators(found, topology)
    if "operator " in found.said:  # ours have said it already
        whose = ""
    return PenstockError(f"query {query!r} failed{where}: {whose}{found}")


def _operators(found: Failure, topology: Topology) -> str:
    """The operators whose code or query a failure came from."""
    names = []
    for operator in topology.ordered():
        if operator.sql is not None:
            mine = found.sql is not None and found.sql in operator.sql
        else:
            mine = found.file is not None and holds_line(
                operator.function, found.file, found.line or 0
            )
        if mine:
            names.append(repr(operator.name))
    return f"operator {' or '.join(names)}: " if names else ""
