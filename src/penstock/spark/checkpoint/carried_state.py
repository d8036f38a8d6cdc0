"""State carried over from one plan to another, while the query stands still.

The operators and their state are the same under both plans; only which key group a key belongs to
differs. The checkpoint is copied, its state divided anew in the copy by the reader and writer that
Spark has for changing the number of key groups, and one empty batch added that says so. Offsets,
watermarks and the numbering of batches go on as they were, so nothing is read or written twice.
The run goes on in the copy once a record of ours, replaced as a whole, names it: a crash at any
moment leaves the old checkpoint in force.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from penstock.errors import InvalidTopology, PenstockError
from penstock.model.sinks import Files, ToChannel
from penstock.spark.checkpoint.durable_files import (
    copy_tree,
    remove,
    remove_tree,
    replacing,
    sync_tree,
)
from penstock.spark.checkpoint.plan_record import PlannedQuery
from penstock.spark.handles import rewrite_state
from penstock.spark.handles.driver import STRICT
from penstock.spark.handles.physical_plan import Shape

_ROW_BY_ROW, _BATCH_BY_BATCH = '"StatefulStreamlineAggregate"', '"stateStoreSave"'


def carry_over(
    session: SparkSession, query: PlannedQuery, old: Path, new: Path, commits: Path,
    handed: Mapping[str, int],
) -> None:  # fmt: skip
    """Make `new` a checkpoint of the query's plan with the state of `old`.

    `commits` are our own records of its batches; `handed` is the last batch that each query handed
    to its sinks, of queries of which it is known.
    """
    remove_tree(new)  # of an attempt that did not come to be recorded
    batches = numbered(old / "commits")
    planned = numbered(old / "offsets")
    if not batches:
        if planned and _may_be_written(query, commits, planned[-1], handed):
            raise _unfinished(query, planned[-1])
        return  # nothing was ever read
    last = batches[-1]
    for batch in planned:
        if batch > last and _may_be_written(query, commits, batch, handed):
            raise _unfinished(query, batch)
    copy_checkpoint(old, new, last, strict=query.shape is None)
    try:
        # Not as a URI: Spark takes a per cent sign in it for part of the name.
        rewrite_state(session, f"file:{new}", last, _KeyGroups.of(session, query.shape).divide)
    except PenstockError as error:
        remove_tree(new)
        raise InvalidTopology(
            f"query {query.plan.name!r}: its state cannot be carried over to another plan: {error}"
        ) from error
    sync_tree(new)  # Spark does not, and the plan's record is about to name it


def copy_checkpoint(old: Path, new: Path, last: int, strict: bool) -> None:
    """Copy a checkpoint as it is after its last finished batch, with an empty batch behind it."""
    copy_tree(old, new)
    forget_after(new / "offsets", last)
    _add_batch(new / "offsets", last, strict)
    _name_alike(new / "state")


def next_directory(query: str, old: Path) -> str:
    """The name of the checkpoint that follows one.

    >>> next_directory("road", Path("queries/road")), next_directory("road", Path("road.plan4"))
    ('road.plan1', 'road.plan5')
    """
    number = old.name.removeprefix(f"{query}.plan") if old.name != query else "0"
    return f"{query}.plan{int(number) + 1}"


def _may_be_written(
    query: PlannedQuery, commits: Path, batch: int, handed: Mapping[str, int]
) -> bool:
    """Whether a batch that Spark did not finish may have left rows in a sink."""
    if (commits / f"{batch}.json").exists():
        return True
    if all(isinstance(sink.sink, Files | ToChannel) for sink in query.sinks):
        return False  # nothing of it is out without a record
    return handed.get(query.plan.name, batch) >= batch


def _unfinished(query: PlannedQuery, batch: int) -> InvalidTopology:
    return InvalidTopology(
        f"query {query.plan.name!r}: batch {batch} was written but not finished when the last run "
        "ended; run once with the earlier plan, and change the plan after that."
    )


def numbered(folder: Path) -> list[int]:
    """The batches that a log of Spark's has entries for, in order."""
    if not folder.is_dir():
        return []
    return sorted(int(file.name) for file in folder.iterdir() if file.name.isdigit())


def forget_after(folder: Path, last: int) -> None:
    """Drop batches that were planned and never written: their rows come in the next one."""
    for batch in numbered(folder):
        if batch > last:
            remove(folder / str(batch))
            remove(folder / f".{batch}.crc")


def _add_batch(folder: Path, last: int, strict: bool) -> None:
    """A batch over the same offsets as the last, that is, over no row, with the new setting."""
    head, settings, *offsets = (folder / str(last)).read_text(encoding="utf-8").split("\n")
    document: dict[str, Any] = json.loads(settings)
    document["conf"][STRICT] = "true" if strict else "false"
    text = "\n".join([head, json.dumps(document, separators=(",", ":")), *offsets])
    with replacing(folder / str(last + 1)) as stream:
        stream.write(text.encode())


def _name_alike(state: Path) -> None:
    """Call an aggregation what it is called in unfused plans.

    It keeps the same state either way and Spark goes on with it under both names, but divides it
    anew under one alone.
    """
    for file in state.glob("*/_metadata/metadata"):
        text = file.read_text(encoding="utf-8")
        if _ROW_BY_ROW in text:
            with replacing(file) as stream:
                stream.write(text.replace(_ROW_BY_ROW, _BATCH_BY_BATCH).encode())
            remove(file.parent / f".{file.name}.crc")


@dataclass(frozen=True)
class _KeyGroups:
    """How a plan divides the rows of its state."""

    count: int
    shape: Shape | None  # of a fused query; in others all of a key divides

    @classmethod
    def of(cls, session: SparkSession, shape: Shape | None) -> "_KeyGroups":
        return cls(int(str(session.conf.get("spark.sql.shuffle.partitions"))), shape)

    def divide(self, operator: int, rows: DataFrame) -> DataFrame:
        """Rows of an operator's state, each in the key group that the plan reads it from."""
        columns = self._dividing(operator, rows.select("partition_key.*").columns)
        key = [F.col("partition_key").getField(name) for name in columns]
        return rows.repartition(self.count, *key)

    def _dividing(self, operator: int, columns: list[str]) -> list[str]:
        """Those of the key's columns that divide."""
        if self.shape is None:
            return columns
        key = self.shape.state.get(operator)
        if key is None or (key.columns and list(key.columns) != columns):
            raise InvalidTopology(
                f"operator {operator} of the plan keeps other state than the checkpoint."
            )
        if not key.columns:  # a join of streams, which is divided by its whole key in every plan
            return columns
        if key.divided_by is None:
            raise InvalidTopology(f"Spark does not report how operator {operator} is partitioned.")
        return [columns[position] for position in key.divided_by]
