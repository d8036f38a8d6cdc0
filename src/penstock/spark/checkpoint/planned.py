"""What a checkpoint needs to know of the queries that run on it."""

from collections.abc import Sequence
from typing import Protocol

from penstock.model.plan import Orders, QueryPlan, TopologyPlan
from penstock.model.topology import SinkBinding
from penstock.spark.handles.physical_plan import Shape


class FusedPart(Protocol):
    """A component whose operators share one shuffle."""

    @property
    def name(self) -> str:
        """Of the component."""

    @property
    def key(self) -> tuple[str, ...]:
        """What it is divided by."""

    @property
    def members(self) -> frozenset[str]:
        """Its operators."""


class PlannedQuery(Protocol):
    """One query, ready to start."""

    @property
    def plan(self) -> QueryPlan:
        """Its components and sinks."""

    @property
    def sinks(self) -> tuple[SinkBinding, ...]:
        """All that get rows of it."""

    @property
    def fused(self) -> Sequence[FusedPart]:
        """Its fused components."""

    @property
    def shape(self) -> Shape | None:
        """What the batches of a fused query must be planned as."""


class PlannedTopology(Protocol):
    """All queries of a topology."""

    @property
    def plan(self) -> TopologyPlan:
        """Queries and components."""

    @property
    def queries(self) -> Sequence[PlannedQuery]:
        """In the order of the plan."""

    @property
    def orders(self) -> Orders:
        """Of runs of operators that are carried out otherwise than declared."""

    @property
    def schemas(self) -> dict[str, str]:
        """Columns by node."""

    @property
    def keys(self) -> dict[str, tuple[str, ...]]:
        """Of each operator that needs a shuffle."""
