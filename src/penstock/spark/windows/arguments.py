"""The arguments of window_aggregate, checked: each refusal is one sentence."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import IntegralType, StructType, TimestampNTZType, TimestampType

from penstock.errors import InvalidInput, InvalidTopology
from penstock.model.aggregates import UserAggregate
from penstock.model.durations import parse_duration_s
from penstock.spark.windows.compiling import Call, parse_call
from penstock.spark.windows.shape import WindowShape

WINDOW_MARK = "spark.timeWindow"  # how Spark marks a column of windows
WATERMARK = "spark.watermarkDelayMs"  # how Spark marks the column a watermark goes by
MODES = ("append", "update")
MOST_BUCKETS = 100_000
WINDOW = "window"


@dataclass(frozen=True)
class Arguments:
    """What is to be computed."""

    by: tuple[str, ...]
    shape: WindowShape
    counted: bool  # windows of rows, not of time
    time: str | None
    aggregates: dict[str, Call | UserAggregate]
    mode: str
    watermark_ms: int | None
    buckets: int
    number: str | None = None  # SQL for a row's number within its key

    def composes(self, wanted: bool | None, behind: bool) -> bool:
        """Whether rows are made so that state may follow: as wanted, or as the topology needs."""
        why = "windows of rows have no event time" if self.counted else ""
        if self.watermark_ms is None and not why:
            why = "without a watermark its windows have no end"
        if wanted and why:
            raise InvalidTopology(f"state_follows is True, but {why}; leave it out.")
        return (behind if wanted is None else wanted) and not why

    def description(self) -> str:
        """What the state depends on, for a person."""
        unit = "rows" if self.counted else "us"
        shape = self.shape
        aggregates = ", ".join(
            f"{name} = {one.sql if isinstance(one, Call) else one.state}"
            for name, one in self.aggregates.items()
        )
        by = ", ".join(self.by) + (f" numbered {self.number}" if self.number else "")
        return (
            f"window {shape.length} {unit}, slide {shape.slide} {unit}, start {shape.origin} "
            f"{unit}, {self.buckets} buckets by ({by}): {aggregates}"
        )


def checked(
    frame: DataFrame, by: Any, window: Any, slide: Any, start: Any, aggregates: Any, time: Any,
    mode: Any, buckets: Any, number: Any = None,
) -> Arguments:  # fmt: skip
    """Refuse what cannot be; see window_aggregate for the meaning of each."""
    if not isinstance(frame, DataFrame):
        raise InvalidTopology(f"frame is a {type(frame).__name__}; give a DataFrame.")
    names = _by(frame, by)
    counted = isinstance(window, int) and not isinstance(window, bool)
    shape = _rows(window, slide) if counted else _time(window, slide, start)
    if mode not in MODES:
        raise InvalidTopology(f"mode is {mode!r}; allowed: {', '.join(MODES)}.")
    if counted and mode != "append":
        raise InvalidTopology(
            f"mode is {mode!r}; windows of rows are emitted only when full; use append."
        )
    if (
        isinstance(buckets, bool)
        or not isinstance(buckets, int)
        or not 1 <= buckets <= MOST_BUCKETS
    ):
        raise InvalidTopology(f"buckets is {buckets!r}; give a number from 1 to {MOST_BUCKETS}.")
    _check_number(frame, number, counted, time)
    column = None if number is not None else _event_time(frame, time, counted)
    watermark_ms = None
    if column is not None and not counted:
        watermark_ms = _watermark_ms(frame, column)
        if watermark_ms is None and mode == "append":
            raise InvalidTopology(
                f"column {column!r} has no watermark, so no window would ever be final; call "
                f"withWatermark({column!r}, ...) first, or give mode='update'."
            )
    return Arguments(
        names, shape, counted, column, _aggregates(aggregates, names), mode, watermark_ms, buckets,
        number,
    )  # fmt: skip


def _check_number(frame: DataFrame, number: Any, counted: bool, time: Any) -> None:
    if number is None:
        return
    if not counted:
        raise InvalidTopology(
            f"number is {number!r}, and windows are of time; give window as a number of rows, or "
            "leave number out."
        )
    if time is not None:
        raise InvalidTopology(
            f"number is {number!r} and time is {time!r}; one of them says the order of rows."
        )
    try:
        kind = frame.select(F.expr(number).alias("number")).schema["number"].dataType
    except (PySparkException, TypeError, AttributeError) as error:
        raise InvalidTopology(
            f"number is {number!r}; give a column or an expression over columns: "
            f"{', '.join(frame.columns)}."
        ) from error
    if not isinstance(kind, IntegralType):
        raise InvalidTopology(
            f"number is {number!r} of type {kind.simpleString()}; give a whole number."
        )


def _by(frame: DataFrame, by: Any) -> tuple[str, ...]:
    names = (by,) if isinstance(by, str) else tuple(by) if isinstance(by, Iterable) else None
    if names is None or not all(isinstance(name, str) for name in names):
        raise InvalidTopology(f"by is {by!r}; give a column name, or a list of them.")
    for name in names:
        if name not in frame.columns:
            raise InvalidTopology(
                f"by names {name!r}, which is not a column; columns: {', '.join(frame.columns)}."
            )
        if isinstance(frame.schema[name].dataType, StructType) or not _is_key(frame, name):
            raise InvalidTopology(
                f"by names {name!r} of type {frame.schema[name].dataType.simpleString()}; allowed: "
                "numbers, text, binary, booleans, dates and times."
            )
    if len(set(names)) < len(names):
        raise InvalidTopology(f"by names {', '.join(names)}; name each only once.")
    return names


def _is_key(frame: DataFrame, name: str) -> bool:
    kind = frame.schema[name].dataType.typeName()
    return kind not in ("array", "map", "struct", "variant", "interval", "null")


def _time(window: Any, slide: Any, start: Any) -> WindowShape:
    length = _micros(window, "window")
    step = length if slide is None else _micros(slide, "slide")
    if step > length:
        raise InvalidTopology(
            f"slide {slide!r} is longer than window {window!r}, so rows would fall between "
            "windows; give at most the window."
        )
    origin = 0 if start is None else _micros(start, "start")
    return WindowShape(length, step, origin % step)


def _rows(window: int, slide: Any) -> WindowShape:
    step = window if slide is None else slide
    if window < 1:
        raise InvalidTopology(f"window is {window!r}; give at least 1 row.")
    if isinstance(step, bool) or not isinstance(step, int) or not 1 <= step <= window:
        raise InvalidTopology(
            f"slide is {slide!r}; with a window of {window} rows give 1 to {window} rows."
        )
    return WindowShape(window, step)


def _micros(value: Any, field: str) -> int:
    try:
        micros = round(parse_duration_s(value, field) * 1e6)
    except InvalidInput as error:
        raise InvalidTopology(str(error)) from error
    if micros < 1:
        raise InvalidTopology(f"{field} is {value!r}; give at least a microsecond.")
    return micros


def _event_time(frame: DataFrame, time: Any, counted: bool) -> str | None:
    times = [
        field.name
        for field in frame.schema.fields
        if isinstance(field.dataType, TimestampType | TimestampNTZType)
    ]
    if time is None:
        watermarked = [name for name in times if WATERMARK in frame.schema[name].metadata]
        found = watermarked if len(watermarked) == 1 else times
        if len(found) == 1:
            return found[0]
        if counted and not times:
            return None
        raise InvalidTopology(
            "time is missing and the frame has "
            f"{'several times: ' + ', '.join(times) if times else 'no timestamp column'}; name one."
        )
    if time not in frame.columns:
        raise InvalidTopology(
            f"time is {time!r}, which is not a column; columns: {', '.join(frame.columns)}."
        )
    if time not in times:
        raise InvalidTopology(
            f"time is {time!r} of type {frame.schema[time].dataType.simpleString()}; give a "
            "timestamp."
        )
    return str(time)


def _watermark_ms(frame: DataFrame, column: str) -> int | None:
    found = frame.schema[column].metadata.get(WATERMARK)
    return None if found is None else int(found)


def _aggregates(given: Any, by: tuple[str, ...]) -> dict[str, Call | UserAggregate]:
    if not isinstance(given, Mapping) or not given:
        raise InvalidTopology(
            f"aggregates is {given!r}; give names with aggregates, such as {{'n': 'count'}}."
        )
    found: dict[str, Call | UserAggregate] = {}
    for name, aggregate in given.items():
        if not isinstance(name, str) or not name:
            raise InvalidTopology(f"aggregates: the name {name!r} is not text.")
        if name in by or name == WINDOW:
            raise InvalidTopology(
                f"aggregates: the name {name!r} is taken by a column of the result; choose another."
            )
        found[name] = (
            aggregate if isinstance(aggregate, UserAggregate) else parse_call(name, aggregate)
        )
    return found
