"""By what the rows of an operator are grouped first, read from Spark's analysed plan."""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from pyspark.sql import DataFrame

from penstock.spark.handles.analysed_plan import key_of
from penstock.spark.handles.gateway import asking
from penstock.spark.handles.plan_nodes import EDGE, WINDOWED, analysed, items, kind_of

_TIME_WINDOW = "spark.timeWindow"  # in the metadata of a column that Spark made of window()
_SLIDE_US = re.compile(r"% (\d+)")
_LENGTH_US = re.compile(r"\+ (\d+)\), LongType")


@dataclass(frozen=True)
class KeyedStep:
    """The step nearest to the upstreams that needs rows to meet.

    `keys` are columns of the upstream's rows, or expressions over them. `merges` says whether parts
    of a key's rows can be reduced before they meet.
    """

    keys: tuple[str, ...]
    merges: bool
    time: str | None = None
    window_us: int | None = None
    slide_us: int | None = None


def windowed(frame: DataFrame, step: KeyedStep) -> DataFrame:
    """Say what a window step of ours does, where Spark only sees buckets and functions."""
    return frame.alias(WINDOWED + json.dumps(asdict(step)))


@asking("read an analysed plan")
def keyed_step(frame: DataFrame) -> KeyedStep | None:
    """The first step of an operator by which its rows meet; None where there is none."""
    found: KeyedStep | None = None
    pending = [analysed(frame)]
    while pending:
        node = pending.pop(0)
        kind = kind_of(node)
        alias = str(node.alias()) if kind == "SubqueryAlias" else ""
        if alias.startswith(EDGE):
            continue
        if alias.startswith(WINDOWED):
            said = json.loads(alias.removeprefix(WINDOWED))
            return KeyedStep(**{**said, "keys": tuple(said["keys"])})
        if kind == "Aggregate":
            found = _aggregate(node)
        elif (key := key_of(kind, node)) is not None:
            found = KeyedStep(tuple(sorted(key)), merges=False)
        pending += items(node.children())
    return found


@asking("read an analysed plan")
def columns_kept(frame: DataFrame) -> frozenset[str]:
    """Columns that an operator hands on as they came from its upstream."""
    came = _came_in(analysed(frame))
    output = items(analysed(frame).output())
    return frozenset(str(c.name()) for c in output if came.get(_id(c)) == str(c.name()))


def _aggregate(node: Any) -> KeyedStep:
    came, made = _came_in(node), _made_inside(node)
    keys: list[str] = []
    window: tuple[str, int, int] | None = None
    for expression in items(node.groupingExpressions()):
        if kind_of(expression) == "AttributeReference" and _id(expression) in came:
            keys.append(came[_id(expression)])
        elif kind_of(expression) == "AttributeReference" and _is_window(expression):
            window = _window(node, came)
        else:
            inside = made.get(_id(expression)) if _has_id(expression) else expression
            text = None if inside is None else _over_input(inside, came)
            if text is None:  # nobody upstream could say which rows meet
                return KeyedStep((), merges=False)
            keys.append(text)
    texts = " ".join(str(one.toString()) for one in items(node.aggregateExpressions()))
    merges = "distinct" not in texts and "PythonUDF" not in texts and "PythonUDAF" not in texts
    return KeyedStep(tuple(keys), merges, *(window or (None, None, None)))


def _came_in(plan: Any) -> dict[int, str]:
    """Columns of the upstreams' rows, by Spark's number for them."""
    return {
        _id(column): str(column.name())
        for node in _nodes(plan)
        if kind_of(node) == "SubqueryAlias" and str(node.alias()).startswith(EDGE)
        for column in items(node.output())
    }


def _made_inside(plan: Any) -> dict[int, Any]:
    """What projections compute, by Spark's number for the column."""
    return {
        _id(one): one.child()
        for node in _nodes(plan)
        if kind_of(node) == "Project"
        for one in items(node.projectList())
        if kind_of(one) == "Alias"
    }


def _window(plan: Any, came: Mapping[int, str]) -> tuple[str, int, int] | None:
    """The column of times, the length and the slide of Spark's own windows."""
    for node in _nodes(plan):
        if kind_of(node) not in ("Project", "Expand"):
            continue
        text = str(node.toString()).splitlines()[0]
        slide, length = _SLIDE_US.search(text), _LENGTH_US.search(text)
        times = re.findall(r"precisetimestampconversion\(\w+#(\d+)", text)
        if slide and length and times and int(times[0]) in came:
            return came[int(times[0])], int(length[1]), int(slide[1])
    return None


def _over_input(expression: Any, came: Mapping[int, str]) -> str | None:
    """An expression as SQL over columns that came in; None where it needs others."""
    if not expression.deterministic() or "PythonUDF" in str(expression.toString()):
        return None
    text = str(expression.sql())
    for column in items(expression.references().toSeq()):
        if _id(column) not in came:
            return None
        text = text.replace(str(column.sql()), f"`{column.name()}`")
    return text


def _is_window(column: Any) -> bool:
    return bool(column.metadata().contains(_TIME_WINDOW))


def _has_id(expression: Any) -> bool:
    return kind_of(expression) in ("AttributeReference", "Alias")


def _id(column: Any) -> int:
    return int(column.exprId().id())


def _nodes(plan: Any) -> Iterator[Any]:
    """The plan's nodes down to the edges of upstreams, which are the last."""
    yield plan
    if not (kind_of(plan) == "SubqueryAlias" and str(plan.alias()).startswith(EDGE)):
        for child in items(plan.children()):
            yield from _nodes(child)
