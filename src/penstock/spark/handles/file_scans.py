"""What the files behind a stream are, and what a query reads of them."""

import json
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from penstock.spark.handles.gateway import asking, scala_object
from penstock.spark.handles.plan_nodes import METRIC, PATH, analysed, items, kind_of

Ids = frozenset[int]
OPTIONS = "org.apache.spark.sql.catalyst.util.CaseInsensitiveMap"
_OF_SPARK = "__metadata_col"  # says of a column that Spark adds it, as the name of a row's file
_HANDED_ON = frozenset({"Filter", "CollectMetrics", "EventTimeWatermark"})


@dataclass(frozen=True)
class FileScan:
    """Files that Spark itself reads as a stream."""

    format: str  # such as parquet
    path: str | None
    schema: StructType  # as they are read, whatever the source makes of their columns
    names: str | None = None  # a pattern of those that are read, where not all are
    in_lines: bool = True  # of text: whether each line is a row


@asking("see which files a stream reads")
def file_scan(frame: DataFrame) -> FileScan | None:
    """The files behind a frame; None where it reads anything else, or more than one kind."""
    leaves = list(_leaves(analysed(frame)))
    if len(leaves) != 1 or kind_of(leaves[0]) != "StreamingRelation":
        return None
    source = leaves[0].dataSource()
    options = scala_object(frame.sparkSession, OPTIONS).apply(source.options())

    def option(name: str) -> str | None:
        found = options.get(name)
        return str(found.get()) if found.isDefined() else None

    in_lines = (option("multiLine") or "").lower() != "true" and option("lineSep") is None
    fields = StructType.fromJson(json.loads(leaves[0].schema().json())).fields
    schema = StructType([one for one in fields if _OF_SPARK not in (one.metadata or {})])
    return FileScan(
        str(source.className()).lower(), option("path"), schema, option("pathGlobFilter"), in_lines
    )


@asking("see which columns a query reads")
def columns_read(
    frame: DataFrame, shared: Collection[str] = ()
) -> dict[str, list[tuple[str, ...]]]:
    """The columns that each consumer of a source needs of it, by source, once optimised.

    Sources are known by the counters above their rows. What is below the exchange of a node that is
    shared is read once, by however many consumers.
    """
    session = frame.sparkSession._jsparkSession
    plan = session.sessionState().optimizer().execute(analysed(frame).clone())
    found: dict[str, list[tuple[str, ...]]] = {}
    for source, columns in _Walk(frozenset(shared)).read(plan, "", None):
        found.setdefault(source, []).append(columns)
    return found


@dataclass
class _Walk:
    """Down an optimised plan, to its sources."""

    shared: frozenset[str]
    _entered: set[str] = field(default_factory=set)  # shared nodes that a consumer was behind

    def read(
        self, node: Any, source: str, needed: Ids | None
    ) -> Iterator[tuple[str, tuple[str, ...]]]:
        """Sources below a node, of whose output some columns are needed; None: all."""
        kind, children = kind_of(node), items(node.children())
        if not children:
            columns = [c for c in items(node.output()) if needed is None or _id(c) in needed]
            yield source, tuple(str(column.name()) for column in columns)
            return
        if kind == "CollectMetrics" and node.name().startswith(METRIC):
            source = node.name().removeprefix(METRIC).partition(PATH)[0]
            if source in self._entered:
                return
            if source in self.shared:
                self._entered.add(source)
        own = frozenset(_id(column) for column in items(node.references().toSeq()))
        if kind == "Project":
            needed = own
        else:
            needed = needed | own if needed is not None and kind in _HANDED_ON else None
        for child in children:
            yield from self.read(child, source, needed)


def _id(column: Any) -> int:
    return int(column.exprId().id())


def _leaves(node: Any) -> Iterator[Any]:
    children = items(node.children())
    if not children:
        yield node
    for child in children:
        yield from _leaves(child)
