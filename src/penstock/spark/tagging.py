"""The rows of several nodes in one frame, so that one query can hand them to several sinks."""

from collections.abc import Iterable
from dataclasses import dataclass
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
    key: tuple[tuple[str, DataType], ...] = ()


def tagged(
    rows: dict[str, DataFrame], components: Iterable[tuple[frozenset[str], tuple[str, ...]]] = ()
) -> DataFrame:
    """One frame with a column for each node, of which a row fills the one it comes from.

    `components` are the members and keys of fused ones. Rows of two nodes of one of them bring its
    key along: Spark then sees that both are divided alike, and unites their key groups one by one,
    so that one task does the work of both.
    """
    groups = _groups(rows, components)
    parts = []
    for number, group in enumerate(groups):
        united = reduce(
            DataFrame.unionByName, (_part(rows, node, groups, number) for node in group.nodes)
        )
        if len(groups) > 1 and len(group.nodes) > 1:
            # The optimiser makes one union of two, and would lose what is divided alike.
            united = united.observe(f"{_ALIKE}{number}", F.count(F.lit(1)).alias("rows"))
        parts.append(united)
    return reduce(DataFrame.unionByName, parts)


def _groups(
    rows: dict[str, DataFrame], components: Iterable[tuple[frozenset[str], tuple[str, ...]]]
) -> list[_Group]:
    groups = []
    for members, names in components:
        keys: dict[tuple[tuple[str, DataType], ...], list[str]] = {}
        for node, frame in rows.items():
            if node in members and set(names) <= set(frame.columns):
                key = tuple((name, frame.schema[name].dataType) for name in names)
                keys.setdefault(key, []).append(node)
        groups += [_Group(tuple(nodes), key) for key, nodes in keys.items() if len(nodes) > 1]
    taken = {node for group in groups for node in group.nodes}
    return groups + [_Group((node,)) for node in rows if node not in taken]


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
