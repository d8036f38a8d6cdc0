"""The executors of a session as nodes, with what each did since the last look."""

from pyspark.sql import SparkSession

from penstock.errors import Unavailable
from penstock.model.observation import NodeObservation
from penstock.spark import handles

_PROVIDER = "spark.sql.streaming.stateStore.providerClass"


class NodeReader:
    """Follows executors as they come and go."""

    def __init__(self, session: SparkSession) -> None:
        self._session = session
        self._busy_ms: dict[str, int] = {}
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
        before, self._busy_ms = self._busy_ms, {one.id: one.busy_ms for one in found}
        # RocksDB keeps state on disk; any other provider in the heap of the executor.
        in_memory = "RocksDB" not in str(self._session.conf.get(_PROVIDER, ""))
        return tuple(
            NodeObservation(
                one.id,
                one.cores,
                max(0, one.busy_ms - before.get(one.id, 0)) / 1e3,
                not one.active,
                float(one.memory_bytes) if in_memory else None,
            )
            for one in found
        )
