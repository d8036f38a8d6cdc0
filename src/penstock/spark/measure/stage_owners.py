"""Which tasks of a batch do the work of which component, read from the executed plan.

A plan is cut into regions at its exchanges: one region is one stage, except that a union at the
top of the last stage runs the tasks of its branches side by side, unless they are divided alike and
share their tasks. A region belongs to the component of the operators whose metrics lie in it; one
without any feeds its neighbour downstream, or, if it reads a source, is that source's.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from penstock.spark.handles.common_watermarks import is_reminder
from penstock.spark.handles.plan_names import METRIC, PATH
from penstock.spark.routes.names import COLUMN

_ROUTE = re.compile(rf"{COLUMN}(\w+)#")


@dataclass(frozen=True)
class Region:
    """Tasks of one stage: `exchange_rdd` is in the stage's RDDs; None is the last stage.

    `first_task` and `tasks` bound its tasks within the stage; tasks is None for all that remain.
    """

    component: str
    exchange_rdd: int | None
    first_task: int = 0
    tasks: int | None = None
    stateful: tuple[int, ...] = ()  # ids of the stateful operators in it
    routed: str | None = None  # the source whose routes number its tasks
    joins: tuple[int, ...] = ()  # those of them that join two streams
    key_groups: int = 0  # of its state
    shuffle: int | None = None  # the one it writes
    feeds: str | None = None  # the component that reads that shuffle


@dataclass
class _Piece:
    """A region while the plan is walked."""

    exchange: Any | None
    parent: "_Piece | None"
    nodes: list[str] = field(default_factory=list)
    stateful: list[int] = field(default_factory=list)
    joins: list[int] = field(default_factory=list)
    key_groups: int = 0
    reads: bool = False
    routed: str | None = None
    partitions: int | None = None


def regions(plan: Any, component_of: Mapping[str, str], lone_source: str | None) -> list[Region]:
    """Cut an executed plan (a py4j handle) into regions.

    `component_of` maps operators and sources to components; `lone_source` is the component of the
    only source, whose edge carries no metric. Where both are empty, regions with state are named
    after its operators.
    """
    pieces = [_Piece(None, None)]
    _walk(plan, pieces[0], pieces, top=True)
    last_stage = [piece for piece in pieces if piece.exchange is None]
    if len(last_stage) > 1:
        pieces.remove(last_stage[0])  # above a union at the top there are no tasks of its own
    found, first_task = [], 0
    for piece in pieces:
        region = Region(
            _component(piece, component_of, lone_source),
            None,
            stateful=tuple(sorted(set(piece.stateful))),
            joins=tuple(sorted(set(piece.joins))),
            key_groups=piece.key_groups,
            routed=piece.routed,
        )
        if piece.exchange is not None:
            dependency = piece.exchange.shuffleDependency()
            parent = piece.parent
            region = replace(
                region,
                exchange_rdd=int(dependency.rdd().id()),
                shuffle=int(dependency.shuffleId()),
                feeds=_component(parent, component_of, lone_source) if parent else None,
            )
        elif len(last_stage) > 1:
            region = replace(region, first_task=first_task, tasks=piece.partitions)
            first_task += piece.partitions or 0
        found.append(region)
    return found


STATEFUL = (
    "StateStoreSave", "StatefulStreamlineAggregate", "SessionWindowStateStoreSave",
    "StreamingSymmetricHashJoin", "StreamingDeduplicate", "StreamingGlobalLimit",
    "FlatMapGroupsWithState", "FlatMapGroupsInPandasWithState", "TransformWithState",
)  # fmt: skip


def _take_state(node: Any, kind: str, piece: _Piece) -> None:
    state = node.stateInfo()
    if state.isDefined():
        info = state.get()
        piece.stateful.append(int(info.operatorId()))
        piece.key_groups = int(info.numPartitions())
        if kind.startswith("StreamingSymmetricHashJoin"):
            piece.joins.append(int(info.operatorId()))


def _walk(node: Any, piece: _Piece, pieces: list[_Piece], top: bool) -> None:
    kind = node.getClass().getSimpleName()
    if kind == "CollectMetricsExec" and node.name().startswith(METRIC):
        piece.nodes.append(node.name().removeprefix(METRIC).partition(PATH)[0])
    elif kind == "ShuffleExchangeExec" and is_reminder(node):
        return
    elif kind == "ShuffleExchangeExec":
        if piece.partitions is None:
            piece.partitions = node.outputPartitioning().numPartitions()
        piece.routed = piece.routed or _routed(node)
        piece = _Piece(node, piece)
        pieces.append(piece)
    elif kind == "ReusedExchangeExec":
        if piece.partitions is None:
            piece.partitions = node.outputPartitioning().numPartitions()
        piece.routed = piece.routed or _routed(node.child())
        return
    elif kind.startswith("MicroBatchScan"):
        piece.reads = True
    elif kind.startswith(STATEFUL):
        _take_state(node, kind, piece)
    children = node.children()
    count = children.size()
    if kind == "UnionExec" and top and count > 1 and not _tasks_are_shared(node):
        for index in range(count):
            branch = _Piece(None, piece)
            pieces.append(branch)
            _walk(children.apply(index), branch, pieces, top=False)
        return
    transparent = kind in ("WholeStageCodegenExec", "InputAdapter", "ProjectExec")
    for index in range(count):
        _walk(children.apply(index), piece, pieces, top=top and transparent)


def _tasks_are_shared(union: Any) -> bool:
    """Whether its branches are divided alike, and a task does the work of all of them."""
    return str(union.outputPartitioning().getClass().getSimpleName()) != "UnknownPartitioning"


def _routed(exchange: Any) -> str | None:
    """The source whose route column an exchange obeys."""
    found = _ROUTE.search(exchange.outputPartitioning().toString())
    return found.group(1) if found else None


def _component(
    piece: _Piece, component_of: Mapping[str, str], lone_source: str | None
) -> str:  # fmt: skip
    """The first metric met from the top names the region; see the module for regions without."""
    if not component_of:
        operators = "-".join(str(number) for number in sorted(set(piece.stateful)))
        return f"state-{operators}" if operators else "stateless"
    current: _Piece | None = piece
    while current is not None:
        for node in current.nodes:
            if node in component_of:
                return component_of[node]
        if current.reads and lone_source is not None:
            return lone_source
        current = current.parent
    return lone_source or next(iter(component_of.values()))
