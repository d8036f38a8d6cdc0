"""What a checkpoint remembers of the plan its state was made by, and whether a start may go on.

The fingerprint of a fused query is its components, the number of key groups, its shuffles and the
columns that divide each state. A query that is not fused has none: Spark itself divides its state
by the whole key and checks that.
"""

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from penstock.errors import InvalidTopology
from penstock.model.plan import Orders, QueryPlan, TopologyPlan
from penstock.model.plan_document import Group, plan_document, read_plan
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
    def again(self) -> tuple[str, ...]:
        """Sources that are read again for each consumer."""

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


@dataclass(frozen=True)
class PlanRecord:
    """A plan, the fingerprints of its fused queries, and where queries that moved are kept.

    What changes together is in this one record, which is replaced whole: where a query is kept,
    what it leaves behind, and how many key groups its state has.
    """

    plan: TopologyPlan
    fingerprints: dict[str, dict[str, Any]]
    directories: dict[str, str]
    orders: Orders = ()  # of stateless operators that do not run as declared
    superseded: dict[str, list[str]] = field(default_factory=dict)
    key_groups: int | None = None  # where they are others than at the first start
    # By query, the sources that each consumer reads again; none where an earlier version began.
    again: Mapping[str, Collection[str]] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """As JSON values."""
        return {
            "plan": plan_document(self.plan),
            "fingerprints": self.fingerprints,
            "directories": self.directories,
            "orders": self.orders,
            "superseded": self.superseded,
            "key_groups": self.key_groups,
            "read again": {query: list(sources) for query, sources in self.again.items()},
        }

    @classmethod
    def from_json(cls, document: dict[str, Any]) -> "PlanRecord":
        """What `to_json` made."""
        plan = read_plan(document["plan"], "plan")
        assert isinstance(plan, TopologyPlan)
        orders = tuple(tuple(order) for order in document.get("orders", ()))
        return cls(
            plan, document["fingerprints"], document["directories"], orders,
            document.get("superseded", {}), document.get("key_groups"),
            document.get("read again", {}),
        )  # fmt: skip

    def fused_groups(self) -> tuple[Group, ...]:
        """The components that are fused."""
        return tuple(
            Group(tuple(members), tuple(key))
            for found in self.fingerprints.values()
            for _, key, members in found["components"]
        )

    def moved(self, query: str, directory: str) -> "PlanRecord":
        """The record once a query is kept elsewhere."""
        left = [one for one in self.superseded.get(query, ()) if one != directory]
        return replace(
            self,
            directories={**self.directories, query: directory},
            superseded={**self.superseded, query: left},
        )

    def superseding(self, query: str, directory: str) -> "PlanRecord":
        """The record with a directory that goes once the query has committed a batch elsewhere."""
        left = self.superseded.get(query, [])
        added = left if directory in left else [*left, directory]
        return replace(self, superseded={**self.superseded, query: added})


def together_with(wanted: Orders, before: Orders) -> Orders:
    """The orders that are wanted, and of other runs of operators those they ran in before.

    >>> together_with((("b", "a"),), (("a", "b"), ("d", "c")))
    (('b', 'a'), ('d', 'c'))
    """
    by_run = {frozenset(order): order for order in (*before, *wanted)}
    return tuple(by_run.values())


def record_of(built: PlannedTopology, before: PlanRecord | None) -> PlanRecord:
    """The record of a plan that is about to run where another one, or none, ran before."""
    prints = {query.plan.name: fingerprint(query) for query in built.queries}
    kept = {name: what for name, what in prints.items() if what}
    again = {query.plan.name: query.again for query in built.queries}
    if before is None:
        return PlanRecord(built.plan, kept, {}, built.orders, again=again)
    return replace(before, plan=built.plan, fingerprints=kept, orders=built.orders, again=again)


def fingerprint(query: PlannedQuery) -> dict[str, Any]:
    """What must be the same whenever a fused query goes on; empty if it is not fused."""
    if query.shape is None:
        return {}
    groups = max((exchange.parts for exchange in query.shape.exchanges), default=0)
    found = {
        "components": [
            [part.name, list(part.key), sorted(part.members)] for part in sorted_parts(query)
        ],
        "key_groups": groups,
        "exchanges": list(query.shape.texts),
        "state": {
            str(operator): [
                list(key.columns),
                None if key.divided_by is None else list(key.divided_by),
            ]
            for operator, key in sorted(query.shape.state.items())
        },
    }
    copied: dict[str, Any] = json.loads(json.dumps(found))
    return copied


def sorted_parts(query: PlannedQuery) -> list[Any]:
    """The fused components by name."""
    return sorted(query.fused, key=lambda part: part.name)


def changed_queries(built: PlannedTopology, before: PlanRecord | None) -> list[PlannedQuery]:
    """Queries whose state was divided otherwise than this plan would divide it."""
    old = before.fingerprints if before is not None else {}
    return [q for q in built.queries if old.get(q.plan.name, {}) != fingerprint(q)]


def refusal(query: PlannedQuery, before: PlanRecord | None, directory: object) -> InvalidTopology:
    """Why a query cannot go on with a checkpoint, and what to do."""
    old = before.fingerprints.get(query.plan.name, {}) if before is not None else {}
    return InvalidTopology(
        f"query {query.plan.name!r}: checkpoint {directory} was created with "
        f"{described(old)}, and would now run with {described(fingerprint(query))}; go on "
        "without --plan, add --apply to carry its state over, or choose another checkpoint."
    )


def described(found: dict[str, Any]) -> str:
    """A fingerprint for a person."""
    if not found:
        return "no fused components"
    parts = [
        f"{' + '.join(members)} fused by ({', '.join(key)})"
        for _, key, members in found["components"]
    ]
    return f"{' and '.join(parts)} in {found['key_groups']} key groups"
