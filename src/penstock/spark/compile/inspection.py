"""The first look at a topology: every operator called once, every refusal made before a start."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

import networkx as nx
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from penstock.errors import InvalidTopology
from penstock.fusion.reading import FORMATS
from penstock.model.route import AUTO
from penstock.model.topology import Operator, Source, Topology
from penstock.model.user_code import CURRENT_OPERATOR, STATE_FOLLOWS
from penstock.spark.compile.cheaper_forms import check_form, forms_of_source, without_forms
from penstock.spark.compile.limits import in_our_words
from penstock.spark.handles.analysed_plan import (
    OperatorAnalysis,
    analyse,
    at_edge,
    has_watermark,
)
from penstock.spark.handles.file_scans import FileScan, file_scan
from penstock.spark.handles.keyed_steps import KeyedStep, columns_kept, keyed_step
from penstock.spark.handles.messages import first_line
from penstock.spark.routes.frames import check_route
from penstock.spark.routes.inside import check_inside
from penstock.spark.sources.control import Controls
from penstock.spark.sources.running.foreign import kind_of
from penstock.spark.sources.running.kinds import running_source
from penstock.spark.sources.running.source import Opening


@dataclass(frozen=True)
class Reading:
    """When the streams of sources began, and whether rows are counted at edges.

    `controls` are the channels by which the driver orders things of its sources.
    """

    epoch_s: float
    measured: bool = True
    controls: Controls | None = None
    at_once: bool = False  # what sources have at first is all that is read
    # By query, the sources that its consumers each read again since it began; None: none began.
    again: Mapping[str, Collection[str]] | None = None


@dataclass(frozen=True)
class Inspection:
    """What Spark says of a topology's nodes."""

    operators: dict[str, OperatorAnalysis]
    schemas: dict[str, str]
    watermarked: frozenset[str]  # sources and operators whose rows have passed a watermark
    types: dict[str, StructType]  # of every node's rows
    sources: dict[str, DataFrame]  # as read; to read one again starts a Python process again
    # Of operators, where routes are to be inferred: what rows meet by, and columns handed on.
    steps: dict[str, KeyedStep | None] = field(default_factory=dict)
    kept: dict[str, frozenset[str]] = field(default_factory=dict)
    files: dict[str, FileScan] = field(default_factory=dict)  # of sources that Spark reads itself
    followed: frozenset[str] = frozenset()  # operators behind which state follows in one query


def inspect_topology(
    topology: Topology,
    session: SparkSession,
    reading: Reading,
    read: dict[str, DataFrame] | None = None,
    followed: frozenset[str] = frozenset(),
) -> Inspection:
    """Call every operator on the frames of its upstreams and look at the plans that result.

    `read` are the sources' frames if they were read before; `followed` are operators that are
    told of state behind them.
    """
    topology.check()
    frames: dict[str, DataFrame] = {}
    operators: dict[str, OperatorAnalysis] = {}
    steps: dict[str, KeyedStep | None] = {}
    kept: dict[str, frozenset[str]] = {}
    inferred = any(s.route is not None and s.route.method == AUTO for s in topology.sources)
    sources = read or {
        source.name: read_source(source, topology, session, reading) for source in topology.sources
    }
    for name, rows in sources.items():
        frames[name] = at_edge(without_forms(rows, name), name)
    for operator in topology.ordered():
        inputs = [frames[name] for name in operator.upstreams]
        frame = apply_operator(operator, inputs, operator.name in followed)
        operators[operator.name] = analyse(frame)
        _check_key(operator, operators[operator.name], frames)
        if inferred:
            steps[operator.name], kept[operator.name] = keyed_step(frame), columns_kept(frame)
        _check_route(operator, operators[operator.name], frames)
        for form, other in operator.other_forms.items():
            made = apply_operator(other, inputs)
            check_form(topology, operator.name, form, operators, frame, made)
        frames[operator.name] = at_edge(frame, operator.name)
    schemas = {name: frames[name].schema.simpleString() for name in operators}
    watermarked = frozenset(name for name, frame in frames.items() if has_watermark(frame))
    _check_watermarks_behind_routes(topology, operators, watermarked)
    types = {name: frame.schema for name, frame in frames.items()}
    scans = {name: file_scan(rows) for name, rows in sources.items()}
    files = {
        name: scan for name, scan in scans.items() if scan is not None and scan.format in FORMATS
    }
    return Inspection(operators, schemas, watermarked, types, sources, steps, kept, files, followed)


def read_source(
    source: Source, topology: Topology, session: SparkSession, reading: Reading
) -> DataFrame:
    """The streaming frame of a source, whatever kind it is."""
    forms = forms_of_source(topology, source.name)
    opening = Opening(reading.controls, reading.at_once, topology.max_latency_s, forms)
    return running_source(source, reading.epoch_s).open(session, opening)


def apply_operator(
    operator: Operator, inputs: list[DataFrame], state_follows: bool = False
) -> DataFrame:
    """An operator's output for the frames of its upstreams."""
    token, followed = CURRENT_OPERATOR.set(operator.name), STATE_FOLLOWS.set(state_follows)
    try:
        result: Any
        if operator.sql is not None:
            result = run_sql(operator.sql, dict(zip(operator.upstreams, inputs, strict=True)))
        else:
            assert operator.function is not None
            result = operator.function(*inputs)
    except InvalidTopology as error:
        raise InvalidTopology(f"operator {operator.name!r}: {error}") from error
    except Exception as error:  # the user's code may raise anything
        step = "sql" if operator.sql is not None else "function"
        said = in_our_words(first_line(error))
        raise InvalidTopology(f"operator {operator.name!r}: {step}: {said}") from error
    finally:
        CURRENT_OPERATOR.reset(token)
        STATE_FOLLOWS.reset(followed)
    if not isinstance(result, DataFrame):
        raise InvalidTopology(
            f"operator {operator.name!r}: function returned {kind_of(result)}; it must return a "
            "DataFrame."
        )
    if not result.isStreaming:
        raise InvalidTopology(
            f"operator {operator.name!r}: function returned a DataFrame that does not depend on "
            f"its upstream {', '.join(operator.upstreams)}."
        )
    return result


def run_sql(text: str, views: dict[str, DataFrame]) -> DataFrame:
    """A query over frames that it names."""
    session = next(iter(views.values())).sparkSession
    for name, frame in views.items():
        frame.createOrReplaceTempView(name)
    try:
        return session.sql(text)
    finally:
        for name in views:
            session.catalog.dropTempView(name)


def _check_route(
    operator: Operator, analysis: OperatorAnalysis, frames: dict[str, DataFrame]
) -> None:
    """Refuse a route of rows that Spark, or another choice, already puts somewhere."""
    if operator.route is None:
        return
    for wrong, why in (
        (analysis.stateful or analysis.shuffles, "it has state or a shuffle of its own"),
        (operator.key is not None, "it has a key"),
        (operator.has_forms, "it has other forms"),
        (len(operator.upstreams) > 1, f"it has the upstreams {', '.join(operator.upstreams)}"),
    ):
        if wrong:
            raise InvalidTopology(
                f"operator {operator.name!r}: route is given, but {why}; routes are for stateless "
                "operators with one upstream."
            )
    check_inside(operator.name, operator.route, frames[operator.upstreams[0]].schema)
    columns = frames[operator.upstreams[0]].columns
    check_route(f"operator {operator.name!r}", operator.route, columns)


def _check_watermarks_behind_routes(
    topology: Topology, operators: dict[str, OperatorAnalysis], watermarked: frozenset[str]
) -> None:
    """Rows that were dealt have no watermark any more, so state behind them would have none."""
    graph = topology.graph()
    for operator in topology.operators:
        if operator.route is None or operator.upstreams[0] not in watermarked:
            continue
        behind = nx.descendants(graph, operator.name)
        state = [name for name in behind if name in operators and operators[name].stateful]
        if state:
            raise InvalidTopology(
                f"operator {operator.name!r}: route is given, and operator {state[0]!r} behind it "
                "keeps state by a watermark that was defined before it; define the watermark "
                "between the two."
            )


def _check_key(
    operator: Operator, analysis: OperatorAnalysis, frames: dict[str, DataFrame]
) -> None:
    if operator.key is None:
        return
    columns = {column for name in operator.upstreams for column in frames[name].columns}
    unknown = [column for column in operator.key if column not in columns]
    if unknown:
        raise InvalidTopology(
            f"operator {operator.name!r}: key column {unknown[0]!r} is not in the schema of its "
            f"upstream {', '.join(operator.upstreams)}; columns: {', '.join(sorted(columns))}."
        )
    for found in analysis.keys:
        foreign = [column for column in operator.key if column not in found]
        if foreign:
            plan = ", ".join(sorted(found)) or "nothing (all rows in one group)"
            raise InvalidTopology(
                f"operator {operator.name!r}: key {foreign[0]!r} contradicts its plan, which "
                f"groups by {plan}; declare a part of that, or leave key out to have it inferred."
            )
