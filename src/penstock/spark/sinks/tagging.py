"""The rows of several nodes in one frame, so that one query can hand them to several sinks."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import DataType

TAG = "__node"
KEY = "__key"  # prefix of the columns by which rows of a component are seen to be divided
_ALIKE = "alike:"  # prefix of metrics that nobody reads; they keep unions apart


@dataclass(frozen=True)
class _Group:
    """Nodes whose rows are divided alike, by columns of these names and types; or one node."""

    nodes: tuple[str, ...]
    component: int | None = None
    key: tuple[tuple[str, DataType], ...] = ()


def tagged(
    rows: dict[str, DataFrame],
    components: Iterable[tuple[frozenset[str], tuple[str, ...]]] = (),
    branch: Callable[[DataFrame, Iterable[str]], DataFrame] = lambda united, _: united,
) -> DataFrame:
    """One frame with a column for each node, of which a row fills the one it comes from.

    `components` are the members and keys of fused ones. Rows of two nodes of one of them bring its
    key along: Spark then sees that both are divided alike, and unites their key groups one by one,
    so that one task does the work of both. Nodes keep their order, by which Spark numbers state.
    `branch` makes of the rows of some nodes what is united with those of others.
    """
    groups = _groups(rows, tuple(components))
    parts = []
    for number, group in enumerate(groups):
        united = reduce(
            DataFrame.unionByName, (_part(rows, node, groups, number) for node in group.nodes)
        )
        if len(groups) > 1 and len(group.nodes) > 1:
            # The optimiser makes one union of two, and would lose what is divided alike.
            united = united.observe(f"{_ALIKE}{number}", F.count(F.lit(1)).alias("rows"))
        parts.append(branch(united, group.nodes))
    return reduce(DataFrame.unionByName, parts)


def _groups(
    rows: dict[str, DataFrame], components: tuple[tuple[frozenset[str], tuple[str, ...]], ...]
) -> list[_Group]:
    """Neighbours of one component together, all others by themselves."""
    groups: list[_Group] = []
    for node, frame in rows.items():
        alone = _alone(node, frame, components)
        last = groups[-1] if groups else None
        if last and alone.key and (last.component, last.key) == (alone.component, alone.key):
            groups[-1] = replace(last, nodes=(*last.nodes, node))
        else:
            groups.append(alone)
    return [group if len(group.nodes) > 1 else _Group(group.nodes) for group in groups]


def _alone(
    node: str, frame: DataFrame,
    components: tuple[tuple[frozenset[str], tuple[str, ...]], ...],
) -> _Group:  # fmt: skip
    for number, (members, names) in enumerate(components):
        if node in members and set(names) <= set(frame.columns):
            key = tuple((name, frame.schema[name].dataType) for name in names)
            return _Group((node,), number, key)
    return _Group((node,))


def _part(rows: dict[str, DataFrame], node: str, groups: list[_Group], mine: int) -> DataFrame:
    columns = [F.col(f"`{column}`") for column in rows[node].columns]
    cells: list[Column] = [
        (F.struct(*columns) if other == node else F.lit(None).cast(rows[other].schema)).alias(other)
        for other in rows
    ]
    for number, group in enumerate(groups):
        for name, kind in group.key:
            value = F.col(f"`{name}`") if number == mine else F.lit(None).cast(kind)
            cells.append(value.alias(f"{KEY}{number}_{name}"))
    return rows[node].select(F.lit(node).alias(TAG), *cells)
