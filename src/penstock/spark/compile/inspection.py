"""The first look at a topology: every operator called once, every refusal made before a start."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from penstock.errors import InvalidTopology
from penstock.model.channels import Feedback, FromChannel
from penstock.model.current_operator import CURRENT_OPERATOR
from penstock.model.sources import Streams
from penstock.model.topology import Operator, Source, Topology
from penstock.spark.channels import log
from penstock.spark.compile.cheaper_forms import check_variant, operators_of_source, without_forms
from penstock.spark.handles.analysed_plan import (
    DELAY,
    OperatorAnalysis,
    analyse,
    at_edge,
    has_watermark,
)
from penstock.spark.handles.messages import first_line
from penstock.spark.routes.frames import obeyed, route_options
from penstock.spark.sources.batch_choice import OPTION as FORMS
from penstock.spark.sources.frames import read_streams
from penstock.spark.sources.generator_source import FORMAT
from penstock.workloads.generator import Generator

WINDOW = "spark.timeWindow"  # how Spark marks a column that is a window
END = "__penstock_end"


@dataclass(frozen=True)
class Inspection:
    """What Spark says of a topology's nodes."""

    operators: dict[str, OperatorAnalysis]
    schemas: dict[str, str]
    watermarked: frozenset[str]  # sources and operators whose rows have passed a watermark
    types: dict[str, StructType]  # of every node's rows
    sources: dict[str, DataFrame]  # as read; to read one again starts a Python process again


def inspect_topology(
    topology: Topology,
    session: SparkSession,
    epoch_s: float,
    parallelism_file: str | None = None,
    at_once: bool = False,
    read: dict[str, DataFrame] | None = None,
) -> Inspection:
    """Call every operator on the frames of its upstreams and look at the plans that result.

    `read` are the sources' frames if they were read before.
    """
    topology.check()
    frames: dict[str, DataFrame] = {}
    operators: dict[str, OperatorAnalysis] = {}
    sources = read or {
        source.name: read_source(
            source,
            session,
            epoch_s,
            parallelism_file,
            at_once,
            operators_of_source(topology, source.name),
        )
        for source in topology.sources
    }
    for name, rows in sources.items():
        frames[name] = at_edge(without_forms(rows, name), name)
    for operator in topology.ordered():
        frame = apply_operator(operator, [frames[name] for name in operator.upstreams])
        operators[operator.name] = analyse(frame)
        _check_key(operator, operators[operator.name], frames)
        if operator.cheaper is not None:
            inputs = [frames[name] for name in operator.upstreams]
            cheap = apply_operator(operator.in_cheaper_form, inputs)
            check_variant(topology, operator.name, operators, frame, cheap)
        frames[operator.name] = at_edge(frame, operator.name)
    schemas = {name: frames[name].schema.simpleString() for name in operators}
    watermarked = frozenset(name for name, frame in frames.items() if has_watermark(frame))
    types = {name: frame.schema for name, frame in frames.items()}
    return Inspection(operators, schemas, watermarked, types, sources)


def read_source(
    source: Source,
    session: SparkSession,
    epoch_s: float,
    parallelism_file: str | None = None,
    at_once: bool = False,
    forms: tuple[str, ...] = (),
) -> DataFrame:
    """The streaming frame of a source; the file tells ours how many tasks are to read it.

    `forms` are operators with a cheaper form: a column says which of them are to use it.
    """
    told = {} if parallelism_file is None else {"parallelism_file": parallelism_file}
    told |= {FORMS: ",".join(forms)} if forms else {}
    if isinstance(source.reader, Generator):
        options = {
            "generator": source.reader.to_json(),
            "epoch_s": repr(epoch_s),
            "stream": source.name,
            "at_once": str(at_once).lower(),
        }
        if source.route is None:
            return session.readStream.format(FORMAT).options(**options, **told).load()
        options |= route_options(session, source.name, source.route)
        lanes = session.readStream.format(FORMAT).options(**options, **told).load()
        return obeyed(lanes, source.name, source.route)
    if isinstance(source.reader, Streams):
        return read_streams(source.name, source.reader, session, epoch_s, source.route, told)
    if isinstance(source.reader, FromChannel):
        return _read_channel(source, source.reader, session, told)
    if source.route is not None:
        raise InvalidTopology(
            f"source {source.name!r}: route is given, but only lanes of Penstock's own sources "
            "can write routes; use Streams, a Generator or a channel, or leave route out."
        )
    if isinstance(source.reader, Feedback):
        return _nothing_yet(source.name, source.reader, session)
    if not callable(source.reader):
        raise InvalidTopology(
            f"source {source.name!r}: reader is {source.reader!r}; give a Generator or a function "
            "of the SparkSession that returns a streaming DataFrame."
        )
    try:
        frame = source.reader(session)
    except Exception as error:  # the user's code may raise anything
        raise InvalidTopology(f"source {source.name!r}: reader: {first_line(error)}") from error
    if not isinstance(frame, DataFrame) or not frame.isStreaming:
        raise InvalidTopology(
            f"source {source.name!r}: reader returned {_kind(frame)}; it must return a streaming "
            "DataFrame, as spark.readStream makes them."
        )
    return frame


def _read_channel(
    source: Source, reader: FromChannel, session: SparkSession, told: dict[str, str]
) -> DataFrame:
    options = {"path": reader.path, "reader": reader.reader, "name": source.name, **told}
    if reader.max_rows is not None:
        options["max_rows"] = str(reader.max_rows)
    if reader.whole:
        options["whole"] = "true"
    log.Channel(Path(reader.path)).register(reader.reader)
    if source.route is not None:
        options |= route_options(session, source.name, source.route)
    frame = session.readStream.format(log.FORMAT).options(**options).load()
    if source.route is not None:
        frame = obeyed(frame, source.name, source.route)
    if reader.watermark is not None and reader.watermark[0] in reader.windows:
        return _with_windows(frame, reader, *reader.watermark)
    for column in reader.windows:
        marked = F.col(f"`{column}`").alias(column, metadata={WINDOW: True})
        frame = frame.withColumn(column, marked)
    return frame if reader.watermark is None else frame.withWatermark(*reader.watermark)


def _with_windows(frame: DataFrame, reader: FromChannel, column: str, delay: str) -> DataFrame:
    """Windows whose ends are the watermark.

    Spark takes a watermark of a window column, and then reads its value wrongly; so the watermark
    is that of the ends, and the windows are marked as what it stands for.
    """
    timed = frame.withColumn(END, F.col(f"`{column}`.end")).withWatermark(END, delay)
    delay_ms = int(delay.split()[0])
    columns = []
    for name in frame.columns:
        marks: dict[str, Any] = {WINDOW: True} if name in reader.windows else {}
        marks |= {DELAY: delay_ms} if name == column else {}
        columns.append(F.col(f"`{name}`").alias(name, metadata=marks) if marks else f"`{name}`")
    return timed.select(*columns)


def _nothing_yet(name: str, feedback: Feedback, session: SparkSession) -> DataFrame:
    """A stand-in for a loop's channel, which is only made once the operators were looked at."""
    try:
        schema = StructType.fromDDL(feedback.schema)
        assert isinstance(schema, StructType)
    except PySparkException as error:
        raise InvalidTopology(
            f"feedback {name!r}: schema {feedback.schema!r}: {first_line(error)}"
        ) from error
    rows = session.readStream.format("rate").load()
    return rows.select(*(F.lit(None).cast(f.dataType).alias(f.name) for f in schema.fields))


def apply_operator(operator: Operator, inputs: list[DataFrame]) -> DataFrame:
    """An operator's output for the frames of its upstreams."""
    token = CURRENT_OPERATOR.set(operator.name)
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
        raise InvalidTopology(f"operator {operator.name!r}: {step}: {first_line(error)}") from error
    finally:
        CURRENT_OPERATOR.reset(token)
    if not isinstance(result, DataFrame):
        raise InvalidTopology(
            f"operator {operator.name!r}: function returned {_kind(result)}; it must return a "
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


def _kind(value: object) -> str:
    if isinstance(value, DataFrame):
        return "a DataFrame that is not streaming"
    return "nothing" if value is None else f"a {type(value).__name__}"
