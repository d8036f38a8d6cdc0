"""A load from a CSV file: a column of times, a column of values, each value held until the next."""

import csv
import io
import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from penstock.errors import InvalidInput, shown
from penstock.model.durations import parse_duration_s
from penstock.workloads.profiles import RateProfile

Floats = NDArray[np.float64]

LONGEST_S = 1e15  # beyond that one second is no longer told from the next
MOST = 1e18


def csv_load(
    file: str | Path,
    time: str | None = None,
    value: str | None = None,
    peak_per_s: float | None = None,
    step_s: float | str | None = None,
    repeat: bool = False,
) -> RateProfile:
    """The rate that a file tells; it is scaled to `peak_per_s`, or the values are rows per second.

    Columns are named by `time` and `value`; left out, they are the columns of these names, or else
    the first two. With `step_s` each value lasts that long and times are not read; without it
    values hold until the next time (seconds, or dates), the last one as long as the one before.
    """
    for field, given in (("file", file), ("time", time), ("value", value)):
        if given is not None and not isinstance(given, str | Path):
            raise InvalidInput(f"{field} is {given!r}; it must be text.")
    content = _content(Path(file))
    table = _table(content, Path(file))
    column = _column(table, "value", value, 1 if len(table.columns) > 1 else 0)
    values = _values(table, column, content)
    if step_s is not None:
        edges_s = _step_s(step_s, len(values)) * np.arange(len(values) + 1)
    else:
        edges_s = _edges_s(table, _column(table, "time", time, 0), content)
    if peak_per_s is not None:
        values = values * _factor(peak_per_s, float(values.max()))
    if not isinstance(repeat, bool):
        raise InvalidInput(f"repeat is {repeat!r}; it must be true or false.")
    knots_s = np.column_stack((edges_s[:-1], edges_s[1:])).ravel()
    return RateProfile(tuple(knots_s.tolist()), tuple(np.repeat(values, 2).tolist()), repeat)


def _content(file: Path) -> bytes:
    try:
        content = file.read_bytes()
    except OSError as error:
        raise InvalidInput(f"file {str(file)!r} cannot be read: {error.strerror}.") from error
    if b"\0" in content:  # pandas would take a cell to end there
        line = len(content[: content.index(b"\0") + 1].splitlines())
        raise InvalidInput(f"file {str(file)!r} is no CSV table: it has a NUL byte in line {line}.")
    return content


def _table(content: bytes, file: Path) -> Any:
    try:
        table = pd.read_csv(
            io.BytesIO(content), dtype=str, keep_default_na=False, skipinitialspace=True
        )
    except (ValueError, pd.errors.ParserError) as error:  # an empty file, bytes that are no text
        reason = " ".join(str(error).split()).rstrip(".")
        raise InvalidInput(f"file {str(file)!r} is no CSV table: {reason}.") from error
    if not isinstance(table.index, pd.RangeIndex):  # pandas took what has no name for row names
        raise InvalidInput(f"file {str(file)!r} is no CSV table: it has more values than names.")
    if len(table) == 0:
        raise InvalidInput(f"file {str(file)!r} has no values below its line of names.")
    return table


def _column(table: Any, field: str, wanted: str | None, place: int) -> str:
    names = [str(name) for name in table.columns]
    if wanted is not None and wanted not in names:
        known = shown(", ".join(names), 100).strip("'\"")
        raise InvalidInput(f"{field} is {shown(wanted)}; the file has the columns {known}.")
    if wanted is not None:
        return wanted
    if field == "time" and len(names) < 2:
        raise InvalidInput(
            f"the file has only the column {shown(names[0])}; give one of times too, or step_s."
        )
    return field if field in names else names[place]


def _values(table: Any, column: str, content: bytes) -> Floats:
    texts = table[column]
    values = np.asarray(pd.to_numeric(texts, errors="coerce"), dtype=np.float64)
    wrong = ~((values >= 0) & (values <= MOST))
    if wrong.any():
        raise InvalidInput(
            f"{_cell(table, column, int(np.argmax(wrong)), content)}; every value must be a "
            f"number from 0 to {MOST:g}, none may be missing."
        )
    return values


def _step_s(step_s: float | str, values: int) -> float:
    found_s = parse_duration_s(step_s, "step_s")
    if not found_s <= LONGEST_S / values:
        raise InvalidInput(
            f"step_s is {shown(step_s)}; {values} values may last {LONGEST_S:g} s in all."
        )
    return found_s


def _edges_s(table: Any, column: str, content: bytes) -> Floats:
    """When each value begins to hold, and when the last one ends; from 0 on."""
    texts = table[column]
    times_s = np.asarray(pd.to_numeric(texts, errors="coerce"), dtype=np.float64)
    if np.isnan(times_s).all():
        dates = pd.to_datetime(texts, errors="coerce", utc=True, format="ISO8601")
        times_s = np.asarray((dates - dates.iloc[0]).dt.total_seconds(), dtype=np.float64)
    wrong = ~(np.abs(times_s) <= LONGEST_S)
    with np.errstate(over="ignore", invalid="ignore"):
        wrong[1:] |= ~(np.diff(times_s) > 0)
    if wrong.any():
        raise InvalidInput(
            f"{_cell(table, column, int(np.argmax(wrong)), content)}; times must be seconds (at "
            f"most {LONGEST_S:g}) or dates such as 2013-01-31T06:00:00 that rise from line to line."
        )
    if len(times_s) < 2:
        raise InvalidInput("the file has one value; give step_s, which says how long it lasts.")
    return np.asarray(np.append(times_s, 2 * times_s[-1] - times_s[-2]) - times_s[0])


def _cell(table: Any, column: str, row: int, content: bytes) -> str:
    """What a cell holds and in which line it is, for somebody who looks for it in an editor."""
    text = str(table[column].iloc[row])
    return f"{shown(column)} is {shown(text)} in line {_line(content, row + 1)}"


def _line(content: bytes, record: int) -> int:
    """Where a record begins, the names being the first; lines without anything are none."""
    lines = list(io.StringIO(content.decode("utf-8"), newline=""))
    usual = csv.field_size_limit(len(content) + 1)
    try:
        reader = csv.reader(lines, skipinitialspace=True)
        begin, found = 0, -1
        for _ in reader:
            found += any(line.strip() for line in lines[begin : reader.line_num])
            if found == record:
                break
            begin = reader.line_num
        return begin + 1
    finally:
        csv.field_size_limit(usual)


def _factor(peak_per_s: object, greatest: float) -> float:
    if greatest == 0:
        raise InvalidInput("every value of the file is 0; they cannot be scaled to a peak.")
    factor = positive(peak_per_s, "peak_per_s") / greatest
    if not math.isfinite(factor):
        raise InvalidInput(
            f"no value of the file is above {greatest:g}; they cannot be scaled to a peak."
        )
    return factor


def positive(value: object, field: str) -> float:
    """A number above 0, or a sentence that names the field."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= MOST:
        raise InvalidInput(
            f"{field} is {shown(value)}; it must be a number above 0, at most {MOST:g}."
        )
    return float(value)
