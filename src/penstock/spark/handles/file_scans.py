"""What the files behind a stream are, as far as it matters for reading them more than once."""

from typing import Any

from pyspark.sql import DataFrame

from penstock.spark.handles.gateway import asking
from penstock.spark.handles.plan_nodes import analysed, items, kind_of

_BY_COLUMN = {"parquet": "Parquet", "orc": "ORC"}


@asking("see which files a stream reads")
def columnar_format(frame: DataFrame) -> str | None:
    """The format of a frame's files, if a reader of some columns does not touch the others."""
    found = {_format(leaf) for leaf in _leaves(analysed(frame))}
    return found.pop() if len(found) == 1 else None


def _leaves(node: Any) -> list[Any]:
    children = items(node.children())
    return [leaf for child in children for leaf in _leaves(child)] if children else [node]


def _format(leaf: Any) -> str | None:
    if kind_of(leaf) != "StreamingRelation":
        return None
    return _BY_COLUMN.get(str(leaf.dataSource().className()).lower())
