"""The shuffles of a physical plan, and by which columns each stateful operator is divided.

What two plans must have in common for one to go on with the state of the other is here: a key
group of an operator holds the keys that a hash of some of its columns sends there.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from penstock.spark.handles.common_watermarks import is_reminder
from penstock.spark.handles.plan_nodes import METRIC, PATH, items, kind_of

OURS = frozenset({"REPARTITION_BY_NUM", "REPARTITION_BY_COL"})
_STATE_KEYS = {  # kind of a stateful node -> the method that gives the columns of its state's key
    "StateStoreSaveExec": "keyExpressions",
    "StatefulStreamlineAggregateExec": "keyExpressions",
    "SessionWindowStateStoreSaveExec": "keyWithoutSessionExpressions",
    "StreamingDeduplicateExec": "keyExpressions",
    "StreamingDeduplicateWithinWatermarkExec": "keyExpressions",
    "FlatMapGroupsWithStateExec": "groupingAttributes",
    "FlatMapGroupsInPandasWithStateExec": "groupingAttributes",
    "TransformWithStateExec": "groupingAttributes",
    "TransformWithStateInPySparkExec": "groupingAttributes",
}


@dataclass(frozen=True)
class Exchange:
    """One shuffle: what it divides by, into how many, who put it there and for which operator."""

    by: tuple[str, ...]
    parts: int
    origin: str
    operator: str | None

    @property
    def text(self) -> str:
        """In a form that is the same for every batch and every run of the same plan."""
        return f"{', '.join(self.by) or 'all rows'} into {self.parts}"


@dataclass(frozen=True)
class StateKey:
    """The columns of a stateful operator's key, and the positions of those that divide it.

    `divided_by` is None where Spark does not say, as for joins of streams.
    """

    columns: tuple[str, ...]
    divided_by: tuple[int, ...] | None


@dataclass(frozen=True)
class Shape:
    """The exchanges of a plan, shared ones once for each consumer, and the state above them."""

    exchanges: tuple[Exchange, ...]
    state: dict[int, StateKey]

    @property
    def texts(self) -> tuple[str, ...]:
        """The exchanges as sorted text."""
        return tuple(sorted(exchange.text for exchange in self.exchanges))


def shape_of(plan: Any) -> Shape:
    """Read a physical plan."""
    exchanges: list[Exchange] = []
    state: dict[int, StateKey] = {}
    for node, kind, operator in _walk(plan, None):
        if kind == "ShuffleExchangeExec" and not is_reminder(node):
            exchanges.append(_exchange(node, operator))
        elif kind in _STATE_KEYS or kind == "StreamingSymmetricHashJoinExec":
            info = node.stateInfo()
            if info.isDefined():
                state[int(info.get().operatorId())] = _state_key(node, kind)
    return Shape(tuple(exchanges), state)


def _walk(node: Any, operator: str | None) -> Iterator[tuple[Any, str, str | None]]:
    """Every node with its kind and the operator whose edge is the nearest above it."""
    kind = kind_of(node)
    if kind == "CollectMetricsExec" and node.name().startswith(METRIC):
        operator = node.name().removeprefix(METRIC).partition(PATH)[0]
    yield node, kind, operator
    if kind == "ReusedExchangeExec":
        yield from _walk(node.child(), operator)
        return
    for child in items(node.children()):
        yield from _walk(child, operator)


def _exchange(node: Any, operator: str | None) -> Exchange:
    partitioning = node.outputPartitioning()
    kind = kind_of(partitioning)
    by: tuple[str, ...] = ()
    if kind == "HashPartitioning":
        by = tuple(_name(expression) for expression in items(partitioning.expressions()))
    elif kind != "SinglePartition$":
        by = (kind,)
    return Exchange(
        by, int(partitioning.numPartitions()), node.shuffleOrigin().toString(), operator
    )


def _state_key(node: Any, kind: str) -> StateKey:
    if kind not in _STATE_KEYS:
        return StateKey((), None)
    keys = items(getattr(node, _STATE_KEYS[kind])())
    place = {key.exprId().id(): position for position, key in enumerate(keys)}
    columns = tuple(str(key.name()) for key in keys)
    for partitioning in _hashes(node.children().apply(0).outputPartitioning()):
        parts = items(partitioning.expressions())
        if all(_is_column(part) and part.exprId().id() in place for part in parts):
            return StateKey(columns, tuple(place[part.exprId().id()] for part in parts))
    return StateKey(columns, None)


def _hashes(partitioning: Any) -> list[Any]:
    kind = kind_of(partitioning)
    if kind == "PartitioningCollection":
        return [found for part in items(partitioning.partitionings()) for found in _hashes(part)]
    return [partitioning] if kind == "HashPartitioning" else []


def _is_column(expression: Any) -> bool:
    return kind_of(expression) == "AttributeReference"


def _name(expression: Any) -> str:
    return str(expression.name() if _is_column(expression) else expression.sql())
