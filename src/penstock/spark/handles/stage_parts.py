"""The stages of a batch, read from its executed plan.

A plan is cut at its exchanges: one part is one stage, except that a union at the top of the last
stage runs the tasks of its branches side by side, unless they are divided alike and share tasks.
"""

from dataclasses import dataclass, field
from typing import Any

from penstock.spark.handles.common_watermarks import is_reminder
from penstock.spark.handles.plan_nodes import METRIC, PATH, items, kind_of

_STATEFUL = (
    "StateStoreSave", "StatefulStreamlineAggregate", "SessionWindowStateStoreSave",
    "StreamingSymmetricHashJoin", "StreamingDeduplicate", "StreamingGlobalLimit",
    "FlatMapGroupsWithState", "FlatMapGroupsInPandasWithState", "TransformWithState",
)  # fmt: skip
_TRANSPARENT = ("WholeStageCodegenExec", "InputAdapter", "ProjectExec")


@dataclass(frozen=True)
class StagePart:
    """A part of a plan, and which tasks of a batch carry it out.

    `exchange_rdd` is among the RDDs of its stage; None is the last stage. `first_task` and `tasks`
    bound its tasks within the stage; tasks is None for all that remain.
    """

    nodes: tuple[str, ...]  # operators and sources whose edges lie in it, from the top
    reads_source: bool = False
    downstream: int | None = None  # position of the part that reads what it writes
    exchange_rdd: int | None = None
    shuffle: int | None = None  # the one it writes
    first_task: int = 0
    tasks: int | None = None
    stateful: tuple[int, ...] = ()  # ids of the stateful operators in it
    joins: tuple[int, ...] = ()  # those of them that join two streams
    reported: tuple[int, ...] = ()  # their places among the stateful operators of a progress
    key_groups: int = 0  # of its state
    gathered: bool = False  # each task works on several of them
    divided_by: tuple[str, ...] = ()  # the exchanges it reads, as Spark writes what they divide by


@dataclass
class _Piece:
    """A part while the plan is walked."""

    exchange: Any | None
    downstream: "_Piece | None"
    nodes: list[str] = field(default_factory=list)
    stateful: list[int] = field(default_factory=list)
    joins: list[int] = field(default_factory=list)
    reported: list[int] = field(default_factory=list)
    key_groups: int = 0
    gathered: bool = False
    reads_source: bool = False
    divided_by: list[str] = field(default_factory=list)
    partitions: int | None = None


def stage_parts(plan: Any) -> tuple[StagePart, ...]:
    """Cut an executed plan into parts."""
    pieces = [_Piece(None, None)]
    _walk(plan, pieces[0], pieces, top=True)
    last_stage = [piece for piece in pieces if piece.exchange is None]
    if len(last_stage) > 1:
        pieces.remove(last_stage[0])  # above a union at the top there are no tasks of its own
    place = {id(piece): position for position, piece in enumerate(pieces)}
    found, first_task = [], 0
    for piece in pieces:
        branch = piece.exchange is None and len(last_stage) > 1
        dependency = None if piece.exchange is None else piece.exchange.shuffleDependency()
        found.append(
            StagePart(
                nodes=tuple(piece.nodes),
                reads_source=piece.reads_source,
                downstream=None if dependency is None else place[id(piece.downstream)],
                exchange_rdd=None if dependency is None else int(dependency.rdd().id()),
                shuffle=None if dependency is None else int(dependency.shuffleId()),
                first_task=first_task if branch else 0,
                tasks=piece.partitions if branch else None,
                stateful=tuple(sorted(set(piece.stateful))),
                joins=tuple(sorted(set(piece.joins))),
                reported=tuple(piece.reported),
                key_groups=piece.key_groups,
                gathered=piece.gathered,
                divided_by=tuple(piece.divided_by),
            )
        )
        first_task += (piece.partitions or 0) if branch else 0
    return tuple(found)


def _walk(node: Any, piece: _Piece, pieces: list[_Piece], top: bool) -> None:
    kind = kind_of(node)
    if kind == "CollectMetricsExec" and node.name().startswith(METRIC):
        piece.nodes.append(node.name().removeprefix(METRIC).partition(PATH)[0])
    elif kind == "ShuffleExchangeExec" and is_reminder(node):
        return
    elif kind == "ShuffleExchangeExec":
        _take_exchange(node.outputPartitioning(), piece)
        piece = _Piece(node, piece)
        pieces.append(piece)
    elif kind == "ReusedExchangeExec":
        _take_exchange(node.child().outputPartitioning(), piece)
        return
    elif kind == "CoalesceExec":
        piece.gathered, piece.partitions = True, int(node.numPartitions())
    elif kind.startswith("MicroBatchScan"):
        piece.reads_source = True
    elif kind.startswith(_STATEFUL):
        # A progress lists them as they are met in the plan, from the top.
        piece.reported.append(sum(len(one.reported) for one in pieces))
        _take_state(node, kind, piece)
    children = items(node.children())
    if kind == "UnionExec" and top and len(children) > 1 and not _tasks_are_shared(node):
        for child in children:
            branch = _Piece(None, piece)
            pieces.append(branch)
            _walk(child, branch, pieces, top=False)
        return
    for child in children:
        _walk(child, piece, pieces, top=top and kind in _TRANSPARENT)


def _take_exchange(partitioning: Any, piece: _Piece) -> None:
    piece.divided_by.append(str(partitioning.toString()))
    if piece.partitions is None:
        piece.partitions = int(partitioning.numPartitions())


def _take_state(node: Any, kind: str, piece: _Piece) -> None:
    state = node.stateInfo()
    if state.isDefined():
        info = state.get()
        piece.stateful.append(int(info.operatorId()))
        piece.key_groups = int(info.numPartitions())
        if kind.startswith("StreamingSymmetricHashJoin"):
            piece.joins.append(int(info.operatorId()))


def _tasks_are_shared(union: Any) -> bool:
    """Whether its branches are divided alike, and a task does the work of all of them."""
    return kind_of(union.outputPartitioning()) != "UnknownPartitioning"
