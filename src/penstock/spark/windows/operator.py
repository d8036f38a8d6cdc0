"""window_aggregate: a windowed aggregate that costs each row one update instead of one per window.

Rows become partial results of their key and pane in the task that has them; buckets of keys meet in
a stateful step that keeps panes and makes windows of them (pane-level and window-level queries of
Balkesen et al. 2013, s. 4.2). A key whose rows are in several tasks, as routes of hot keys leave
them, is merged there like any other.
"""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.state import GroupStateTimeout
from pyspark.sql.types import LongType, StructField, StructType

from penstock.errors import InvalidTopology
from penstock.model.aggregates import UserAggregate
from penstock.model.user_code import STATE_FOLLOWS, operator_name
from penstock.spark.handles.analysed_plan import keyed_by
from penstock.spark.handles.keyed_steps import KeyedStep, windowed
from penstock.spark.handles.messages import first_line
from penstock.spark.handles.state_stores import ROCKSDB, STATE_STORE
from penstock.spark.windows import composed_step, map_side, state_format
from penstock.spark.windows.arguments import (
    WATERMARK,
    WINDOW,
    WINDOW_MARK,
    Arguments,
    checked,
)
from penstock.spark.windows.compiling import Call, Compiled
from penstock.spark.windows.composed_step import ComposedStep
from penstock.spark.windows.kernels import Rows
from penstock.spark.windows.numbered_step import NumberedStep
from penstock.spark.windows.output import Output
from penstock.spark.windows.pane_step import PaneStep
from penstock.spark.windows.row_step import RowStep
from penstock.spark.windows.user import Where

_EVEN = 64  # partitions that divide this number get the same number of buckets each
DEFAULT_BUCKETS = 16
# Windows without a key that a row may fall in where Spark's own query, which copies it into each,
# is the quicker one: there is next to no state, and what panes save of so few copies is less than
# it costs each task to call Python. With keys, panes save most of the work on state.
FEW_COPIES = 5


@lru_cache
def bucket_values(count: int) -> tuple[int, ...]:
    """As many integers, whose hashes take all remainders of 64 in turn.

    They depend on the count alone: a bucket's state is found under its value at every restart.

    >>> [spark_hash(value) % 4 for value in bucket_values(8)]
    [0, 1, 2, 3, 0, 1, 2, 3]
    """
    waiting: dict[int, list[int]] = {remainder: [] for remainder in range(_EVEN)}
    candidate = 0
    found: list[int] = []
    while len(found) < count:
        wanted = waiting[len(found) % _EVEN]
        if wanted:
            found.append(wanted.pop(0))
            continue
        waiting[spark_hash(candidate) % _EVEN].append(candidate)
        candidate += 1
    return tuple(found)


def spark_hash(value: int, seed: int = 42) -> int:
    """Murmur3 of a 32-bit integer as Spark's hash() gives it, not negative.

    >>> spark_hash(1) - 2**32
    -559580957
    """
    mask = 0xFFFFFFFF
    k = value * 0xCC9E2D51 & mask
    k = (k << 15 | k >> 17) & mask
    k = k * 0x1B873593 & mask
    h = (seed ^ k) & mask
    h = (h << 13 | h >> 19) & mask
    h = (h * 5 + 0xE6546B64) & mask
    h ^= 4
    h = (h ^ h >> 16) * 0x85EBCA6B & mask
    h = (h ^ h >> 13) * 0xC2B2AE35 & mask
    return h ^ h >> 16


def window_aggregate(
    frame: DataFrame,
    *,
    by: str | Sequence[str],
    window: str | float | int,
    aggregates: Mapping[str, str | UserAggregate],
    slide: str | float | int | None = None,
    start: str | float | None = None,
    time: str | None = None,
    mode: str = "append",
    buckets: int = DEFAULT_BUCKETS,
    number: str | None = None,
    state_follows: bool | None = None,
) -> DataFrame:
    """Aggregates of each key in sliding windows: the `by` columns, `window`, and the aggregates.

    The rows are those of `frame.groupBy(*by, F.window(time, window, slide, start)).agg(...)`.
    `window` and `slide` are durations of event time ("60s"), or whole numbers of a key's rows;
    without a slide, windows tumble. `aggregates` are texts such as "count", "sum(speed)",
    "approx_count_distinct(vehicle)", or a UserAggregate. `mode` is that of the sink. `buckets` is
    into how many pieces the state is cut: more of them for many keys of which a batch touches few.
    `number` is a column or expression that numbers a key's rows from 0, for windows of rows: then
    rows are reduced before they are shuffled. `state_follows` says that the query goes on with
    another stateful step, as over `window_time(window)`; in a topology nobody need say so.
    """
    given = checked(frame, by, window, slide, start, aggregates, time, mode, buckets, number)
    composes = given.composes(state_follows, STATE_FOLLOWS.get())
    calls = {name: one for name, one in given.aggregates.items() if isinstance(one, Call)}
    native = _native(frame, given, calls) if calls or not given.counted else None
    few = not given.counted and given.shape.windows_of_a_row <= (1 if given.by else FEW_COPIES)
    if few and native is not None and len(calls) == len(given.aggregates):
        return windowed(native, _step(given))
    return windowed(_by_panes(frame, given, native, composes), _step(given))


def _step(given: Arguments) -> KeyedStep:
    """What the rows meet by: those of a key in parts, unless they are counted."""
    spans = (None, None) if given.counted else (given.shape.length, given.shape.slide)
    time = None if given.counted else given.time
    merges = not given.counted or given.number is not None
    return KeyedStep(tuple(given.by), merges, time, *spans)


def _native(frame: DataFrame, given: Arguments, calls: Mapping[str, Call]) -> DataFrame | None:
    """Spark's own query for the aggregates it knows; its analyser checks and types them."""
    if not calls:
        return None
    columns = [F.expr(call.sql).alias(name) for name, call in calls.items()]
    try:
        if given.counted:
            return frame.groupBy(*_columns(given.by)).agg(*columns)
        shape = given.shape
        spans = [f"{value} microseconds" for value in (shape.length, shape.slide, shape.origin)]
        window = F.window(F.col(f"`{given.time}`"), *spans).alias(WINDOW)
        return frame.groupBy(*_columns(given.by), window).agg(*columns)
    except PySparkException as error:
        raise InvalidTopology(f"aggregates: {first_line(error)}") from error


def _by_panes(
    frame: DataFrame, given: Arguments, native: DataFrame | None, composes: bool
) -> DataFrame:
    ansi = str(frame.sparkSession.conf.get("spark.sql.ansi.enabled")) == "true"
    compiled = Compiled(frame, ansi)
    for name, aggregate in given.aggregates.items():
        if isinstance(aggregate, Call):
            assert native is not None
            compiled.add(name, aggregate, native.schema[name].dataType)
        else:
            compiled.add_user(name, aggregate)
    name = operator_name()
    where = Where(f"operator {name!r}" if name else "window_aggregate", given.by)
    keys = {f"k{place}": F.col(f"`{name}`") for place, name in enumerate(given.by)}
    if not keys:
        keys = {"k0": F.lit(0)}
    timed = {"t": F.col(f"`{given.time}`")} if given.time is not None else {}
    if given.number is not None:
        timed = {"t": F.expr(given.number).cast("bigint")}
    rows = frame.select(
        *(column.alias(name) for name, column in {**keys, **timed, **compiled.projected}.items())
    )
    output = _output(frame, given, compiled, tuple(keys), composes)
    if given.number is not None:
        found = _over_numbers(rows, given, compiled, tuple(keys), where)
    elif given.counted:
        found = _over_rows(rows, given, compiled, tuple(keys), where)
    else:
        found = _over_time(rows, given, compiled, tuple(keys), where, composes)
    return keyed_by(found.mapInArrow(output, output.schema), given.by)


def _over_time(
    rows: DataFrame, given: Arguments, compiled: Compiled, keys: tuple[str, ...], where: Where,
    composes: bool,
) -> DataFrame:  # fmt: skip
    watermarked = given.watermark_ms is not None
    kernels = tuple(compiled.kernels)
    lane = map_side.PaneLane(
        keys, given.shape, kernels, bucket_values(given.buckets), watermarked, where
    )
    append = given.mode == "append"
    kept = PaneStep(
        given.shape,
        kernels,
        tuple(compiled.results),
        append,
        watermarked,
        where,
        given.description(),
    )
    cut = rows.mapInArrow(lane, map_side.SCHEMA)
    timeout = GroupStateTimeout.NoTimeout
    if watermarked:
        # The column by which Spark drops what is late, and which shows the step the watermark.
        cut = cut.withMetadata("expires", {WATERMARK: given.watermark_ms})
        timeout = GroupStateTimeout.EventTimeTimeout
    if composes:
        _check_store(rows.sparkSession)
        timed = cut.groupBy("bucket").transformWithStateInPandas(
            ComposedStep(kept), composed_step.OUTPUT, given.mode, "EventTime",
            eventTimeColumnName=composed_step.AT,
        )  # fmt: skip
        return timed.select("content")
    return cut.groupBy("bucket").applyInPandasWithState(
        _called(kept), state_format.OUTPUT, state_format.STATE, given.mode, timeout
    )


def _over_numbers(
    rows: DataFrame, given: Arguments, compiled: Compiled, keys: tuple[str, ...], where: Where
) -> DataFrame:
    kernels = (*compiled.kernels, Rows())
    lane = map_side.PaneLane(keys, given.shape, kernels, bucket_values(given.buckets), False, where)
    kept = NumberedStep(
        given.shape, kernels, tuple(compiled.results), where, given.description()
    )  # fmt: skip
    cut = rows.where("t >= 0").mapInArrow(lane, map_side.SCHEMA)
    return cut.groupBy("bucket").applyInPandasWithState(
        _called(kept),
        state_format.OUTPUT,
        state_format.STATE,
        given.mode,
        GroupStateTimeout.NoTimeout,
    )


def _over_rows(
    rows: DataFrame, given: Arguments, compiled: Compiled, keys: tuple[str, ...], where: Where
) -> DataFrame:
    time = "t" if given.time is not None else None
    kept = RowStep(
        keys, time, given.shape, tuple(compiled.kernels), tuple(compiled.results), where,
        given.description(),
    )  # fmt: skip
    lane = map_side.RowLane(keys, bucket_values(given.buckets))
    cut = rows.mapInArrow(lane, map_side.SCHEMA)
    return cut.groupBy("bucket").applyInPandasWithState(
        _called(kept),
        state_format.OUTPUT,
        state_format.STATE,
        given.mode,
        GroupStateTimeout.NoTimeout,
    )


def _check_store(session: SparkSession) -> None:
    """Say what Spark would say, before anything runs."""
    if str(session.conf.get(STATE_STORE)) != ROCKSDB:
        raise InvalidTopology(
            f"state follows windows, which needs RocksDB for its state; set {STATE_STORE} to "
            f"{ROCKSDB}."
        )


def _called(kept: Any) -> Any:
    """Spark looks at the parameters of a function, and takes no other callable."""

    def step_of_bucket(key: Any, frames: Any, state: Any) -> Any:
        return kept(key, frames, state)

    return step_of_bucket


def _output(
    frame: DataFrame, given: Arguments, compiled: Compiled, keys: tuple[str, ...], composes: bool
) -> Output:
    bound = LongType() if given.time is None or given.counted else frame.schema[given.time].dataType
    window = StructType([StructField("start", bound), StructField("end", bound)])
    fields = [StructField(name, frame.schema[name].dataType) for name in given.by]
    # As Spark marks the windows of its own, for `window_time` and for state that follows.
    marks: dict[str, Any] = {} if given.counted else {WINDOW_MARK: True}
    marks |= {WATERMARK: given.watermark_ms} if composes else {}
    fields.append(StructField(WINDOW, window, metadata=marks))
    fields += [StructField(name, kind) for name, kind in compiled.types]
    return Output(StructType(fields), keys if given.by else (), given.shape)


def _columns(names: Sequence[str]) -> list[Column]:
    return [F.col(f"`{name}`") for name in names]
