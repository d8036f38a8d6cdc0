"""State stores: where they are, and where their next task is to run."""

from dataclasses import dataclass
from typing import Any

from pyspark.sql import SparkSession

from penstock.spark.handles.gateway import PYTHON_UTILS, STREAMING, asking, java_class


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
