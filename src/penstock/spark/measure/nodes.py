"""The executors of a session as nodes, with what each did since the last look."""

from pyspark.sql import SparkSession

from penstock.errors import Unavailable
from penstock.model.observation import NodeObservation
from penstock.spark import handles
from penstock.spark.handles.state_stores import STATE_STORE


class NodeReader:
    """Follows executors as they come and go."""

    def __init__(self, session: SparkSession) -> None:
        self._session = session
        self._before: dict[str, handles.ExecutorInfo] = {}
        self.take([])  # what was done before (a warm-up, say) is no work of the first period

    def take(self, missing: list[str]) -> tuple[NodeObservation, ...]:
        """Nodes now; when they cannot be listed, `missing` gets the reason and there are none."""
        context = self._session.sparkContext
        if str(context.master).startswith("local"):
            return (NodeObservation("driver", context.defaultParallelism, float("nan")),)
        try:
            found = handles.executors(self._session)
        except Unavailable as reason:
            missing.append(f"executors: {reason}")
            return ()
        before, self._before = self._before, {one.id: one for one in found}
        # RocksDB keeps state on disk; any other provider in the heap of the executor.
        in_memory = "RocksDB" not in str(self._session.conf.get(STATE_STORE, ""))
        return tuple(
            NodeObservation(
                one.id,
                one.cores,
                _since(one.busy_ms, before[one.id].busy_ms if one.id in before else 0),
                not one.active,
                float(one.memory_bytes) if in_memory else None,
                _since(one.gc_ms, before[one.id].gc_ms if one.id in before else 0),
            )
            for one in found
        )


def _since(now_ms: int, before_ms: int) -> float:
    """Seconds that a count of milliseconds has grown by."""
    return max(0, now_ms - before_ms) / 1e3
