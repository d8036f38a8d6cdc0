"""What the files behind a stream are, and what a query reads of them."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame

from penstock.spark.handles.gateway import asking
from penstock.spark.handles.plan_nodes import METRIC, PATH, analysed, items, kind_of

Ids = frozenset[int]
_HANDED_ON = frozenset({"Filter", "CollectMetrics", "EventTimeWatermark"})


@dataclass(frozen=True)
class FileScan:
    """Files that Spark itself reads as a stream."""

    format: str  # such as parquet
    path: str | None


@asking("see which files a stream reads")
def file_scan(frame: DataFrame) -> FileScan | None:
    """The files behind a frame; None where it reads anything else, or more than one kind."""
    leaves = list(_leaves(analysed(frame)))
    if len(leaves) != 1 or kind_of(leaves[0]) != "StreamingRelation":
        return None
    source = leaves[0].dataSource()
    path = source.options().get("path")
    return FileScan(str(source.className()).lower(), path.get() if path.isDefined() else None)


@asking("see which columns a query reads")
def columns_read(frame: DataFrame) -> dict[str, list[tuple[str, ...]]]:
    """The columns that each consumer of a source needs of it, by source, once optimised.

    Sources are known by the counters above their rows.
    """
    session = frame.sparkSession._jsparkSession
    plan = session.sessionState().optimizer().execute(analysed(frame).clone())
    found: dict[str, list[tuple[str, ...]]] = {}
    for source, columns in _read(plan, "", None):
        found.setdefault(source, []).append(columns)
    return found


def _read(node: Any, source: str, needed: Ids | None) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Sources below a node, of whose output some columns are needed; None: all."""
    kind, children = kind_of(node), items(node.children())
    if not children:
        columns = [c for c in items(node.output()) if needed is None or _id(c) in needed]
        yield source, tuple(str(column.name()) for column in columns)
        return
    if kind == "CollectMetrics" and node.name().startswith(METRIC):
        source = node.name().removeprefix(METRIC).partition(PATH)[0]
    own = frozenset(_id(column) for column in items(node.references().toSeq()))
    if kind == "Project":
        needed = own
    else:
        needed = needed | own if needed is not None and kind in _HANDED_ON else None
    for child in children:
        yield from _read(child, source, needed)


def _id(column: Any) -> int:
    return int(column.exprId().id())


def _leaves(node: Any) -> Iterator[Any]:
    children = items(node.children())
    if not children:
        yield node
    for child in children:
        yield from _leaves(child)
