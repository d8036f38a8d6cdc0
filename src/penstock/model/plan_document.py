"""Plans as JSON documents: in a checkpoint, in `--plan FILE.json`, and proposed in a history."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from penstock.errors import InvalidInput
from penstock.model.plan import Component, QueryPlan, TopologyPlan
from penstock.model.sinks import OUTPUT_MODES


@dataclass(frozen=True)
class Group:
    """Operators that are to run as one component, as `penstock advise fusion` names them."""

    operators: tuple[str, ...]
    key: tuple[str, ...]


@dataclass(frozen=True)
class Fusion:
    """Which operators run as one component; those of no group run as they are declared.

    >>> str(Fusion((Group(("speeds", "tolls"), ("direction", "segment")),)))
    'fuse speeds + tolls by (direction, segment)'
    >>> str(Fusion(()))
    'fuse nothing'
    """

    groups: tuple[Group, ...]

    def __str__(self) -> str:
        parts = [f"fuse {' + '.join(g.operators)} by ({', '.join(g.key)})" for g in self.groups]
        return "; ".join(parts) or "fuse nothing"


@dataclass(frozen=True)
class Order:
    """Stateless operators that follow each other, upstream first.

    >>> str(Order(("few", "named")))
    'few > named'
    """

    operators: tuple[str, ...]

    def __str__(self) -> str:
        return " > ".join(self.operators)


PlanChange = Fusion | Order  # what the slow loop proposes and a start takes up


def change_document(change: PlanChange) -> dict[str, Any]:
    """A change of plan as JSON values."""
    if isinstance(change, Order):
        return {"order": list(change.operators)}
    groups = [{"operators": list(g.operators), "key": list(g.key)} for g in change.groups]
    return {"components": groups}


def read_change(document: Any, where: str) -> PlanChange:
    """The change of plan of its document."""
    if isinstance(document, Mapping) and "order" in document:
        return Order(_texts(document, "order", where))
    return Fusion(_groups(document, where))


def plan_document(plan: TopologyPlan) -> dict[str, Any]:
    """A plan as JSON values."""
    return asdict(plan)


def read_plan(document: Any, where: str) -> TopologyPlan | tuple[Group, ...]:
    """A whole plan, or the groups of an answer of `penstock advise fusion`."""
    if isinstance(document, Mapping) and "queries" in document:
        return TopologyPlan(
            tuple(
                _query(query, f"{where}: queries[{n}]")
                for n, query in enumerate(_list(document, "queries", where))
            ),
            _texts({"reasons": (), **document}, "reasons", where),
        )
    if isinstance(document, Mapping) and "components" in document:
        return _groups(document, where)
    raise InvalidInput(
        f"{where}: there is neither 'queries' (a whole plan) nor 'components' (as `penstock advise "
        "fusion` answers)."
    )


def _groups(given: Any, where: str) -> tuple[Group, ...]:
    return tuple(
        Group(_texts(part, "operators", at), _texts(part, "key", at))
        for n, part in enumerate(_list(given, "components", where))
        for at in (f"{where}: components[{n}]",)
    )


def _query(given: Any, where: str) -> QueryPlan:
    parts = []
    for n, part in enumerate(_list(given, "components", where)):
        at = f"{where}.components[{n}]"
        parts.append(
            Component(
                _text(part, "name", at), _texts(part, "operators", at), _texts(part, "key", at)
            )
        )
    mode = given.get("output_mode", "append")
    if mode not in OUTPUT_MODES:
        allowed = ", ".join(OUTPUT_MODES)
        raise InvalidInput(f"{where}: output_mode is {str(mode)[:40]!r}; allowed: {allowed}.")
    return QueryPlan(_text(given, "name", where), tuple(parts), _texts(given, "sinks", where), mode)


def _list(given: Any, field: str, where: str) -> list[Any]:
    value = given.get(field) if isinstance(given, Mapping) else None
    if not isinstance(value, list | tuple):
        raise InvalidInput(f"{where}: {field} is {str(value)[:40]!r}; give a list.")
    return list(value)


def _texts(given: Any, field: str, where: str) -> tuple[str, ...]:
    values = _list(given, field, where)
    for value in values:
        if not isinstance(value, str):
            raise InvalidInput(f"{where}: {field} holds {str(value)[:40]!r}; names must be text.")
    return tuple(values)


def _text(given: Any, field: str, where: str) -> str:
    value = given.get(field) if isinstance(given, Mapping) else None
    if not isinstance(value, str) or not value:
        raise InvalidInput(f"{where}: {field} is {str(value)[:40]!r}; give a name.")
    return value
