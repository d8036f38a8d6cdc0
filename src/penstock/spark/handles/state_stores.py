"""The state stores of a running query: where the driver thinks they are, and how to change that.

A task with state runs where its store was last reported to the driver. If another executor is
reported between two batches, the next batch runs the task there, and it loads the missing state.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from penstock.spark.handles.gateway import PYTHON_UTILS, STREAMING, asking, java_class
from penstock.spark.handles.queries import checkpoint_of

STATE_STORE = "spark.sql.streaming.stateStore.providerClass"
ROCKSDB = f"{STREAMING}.state.RocksDBStateStoreProvider"
DEFAULT_STORE = "default"
# A join keeps these for each key group, or, in its newer form, one store: reporting stores that
# there are not costs a call and changes nothing.
JOIN_STORES = tuple(
    f"{side}-{what}"
    for side in ("left", "right")
    for what in ("keyToNumValues", "keyWithIndexToValue")
)


@dataclass(frozen=True)
class StateStoreKey:
    """One state store as the driver's coordinator knows it; joins have four per partition."""

    checkpoint_root: str  # the checkpoint's `state` directory as a URI
    run_id: str
    operator: int
    partition: int
    store: str = "default"


def state_location(spark: SparkSession, key: StateStoreKey) -> str | None:
    """Executor id that last held a state store; None when the driver knows of none."""
    with asking("find a state store"):
        found = _coordinator(spark).getLocation(_provider_id(spark, key))
        # Given as executor_<host>_<id>, and a host may hold underscores.
        return str(found.get()).rpartition("_")[2] if found.isDefined() else None


def report_state_location(
    spark: SparkSession, key: StateStoreKey, host: str, executor_id: str
) -> None:
    """Tell the driver that a state store is at an executor: the next batch runs its task there."""
    with asking("move a state store"):
        nothing = java_class(spark, PYTHON_UTILS).toSeq([])
        _coordinator(spark).reportActiveInstance(
            _provider_id(spark, key), host, executor_id, nothing
        )


def _provider_id(spark: SparkSession, key: StateStoreKey) -> Any:
    provider = java_class(spark, f"{STREAMING}.state.StateStoreProviderId")
    store = java_class(spark, f"{STREAMING}.state.StateStoreId")(
        key.checkpoint_root, key.operator, key.partition, key.store
    )
    return provider(store, java_class(spark, "java.util.UUID").fromString(key.run_id))


def _coordinator(spark: SparkSession) -> Any:
    return spark._jsparkSession.sessionState().streamingQueryManager().stateStoreCoordinator()


@dataclass(frozen=True)
class Stores:
    """The stores of one component: all operators whose state its tasks hold."""

    operators: tuple[int, ...]
    joins: tuple[int, ...]
    key_groups: int

    def of(self, key_group: int) -> Iterator[tuple[int, int, str]]:
        """Operator, partition and name of each store of a key group."""
        for operator in self.operators:
            names = (*JOIN_STORES, DEFAULT_STORE) if operator in self.joins else (DEFAULT_STORE,)
            for name in names:
                yield operator, key_group, name


class StoreLocations:
    """Reads and writes the driver's knowledge of one run of one query."""

    def __init__(self, session: SparkSession, query: StreamingQuery) -> None:
        self._session = session
        self._run_id = str(query.runId)
        self.checkpoint = checkpoint_of(query)

    def find(self, stores: Stores, key_group: int) -> str:
        """Executor that holds a key group; "" when the driver knows of none."""
        for store in stores.of(key_group):
            found = state_location(self._session, self._key(*store))
            if found is not None:
                return found
        return ""

    def report(self, stores: Stores, key_group: int, host: str, executor: str) -> None:
        """Report that all stores of a key group are at an executor."""
        for store in stores.of(key_group):
            report_state_location(self._session, self._key(*store), host, executor)

    def _key(self, operator: int, partition: int, name: str) -> StateStoreKey:
        root = f"{self.checkpoint}/state"
        return StateStoreKey(root, self._run_id, operator, partition, name)
