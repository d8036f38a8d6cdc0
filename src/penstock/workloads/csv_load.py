"""A load from a CSV file: a column of times, a column of values, each value held until the next."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from penstock.errors import InvalidInput
from penstock.model.durations import parse_duration_s
from penstock.workloads.profiles import RateProfile

Floats = NDArray[np.float64]

FIRST_LINE = 2  # of values, for somebody who looks at the file in an editor


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
    table = _read(Path(file))
    values = _values(table, _column(table, "value", value, 1 if len(table.columns) > 1 else 0))
    if step_s is not None:
        edges_s = parse_duration_s(step_s, "step_s") * np.arange(len(values) + 1)
    else:
        edges_s = _edges_s(table, _column(table, "time", time, 0))
    if peak_per_s is not None:
        values = values * _factor(peak_per_s, float(values.max()))
    if not isinstance(repeat, bool):
        raise InvalidInput(f"repeat is {repeat!r}; it must be true or false.")
    knots_s = np.column_stack((edges_s[:-1], edges_s[1:])).ravel()
    return RateProfile(tuple(knots_s.tolist()), tuple(np.repeat(values, 2).tolist()), repeat)


def _read(file: Path) -> Any:
    try:
        table = pd.read_csv(file, dtype=str, keep_default_na=False, skipinitialspace=True)
    except OSError as error:
        raise InvalidInput(f"file {str(file)!r} cannot be read: {error.strerror}.") from error
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
        raise InvalidInput(f"{field} is {wanted!r}; the file has the columns {', '.join(names)}.")
    if wanted is not None:
        return wanted
    if field == "time" and len(names) < 2:
        raise InvalidInput(
            f"the file has only the column {names[0]!r}; give one of times too, or step_s."
        )
    return field if field in names else names[place]


def _values(table: Any, column: str) -> Floats:
    texts = table[column]
    values = np.asarray(pd.to_numeric(texts, errors="coerce"), dtype=np.float64)
    wrong = ~(np.isfinite(values) & (values >= 0))
    if wrong.any():
        line = int(np.argmax(wrong))
        raise InvalidInput(
            f"{column!r} is {texts.iloc[line]!r} in line {line + FIRST_LINE}; every value must be "
            "a finite number of at least 0, none may be missing."
        )
    return values


def _edges_s(table: Any, column: str) -> Floats:
    """When each value begins to hold, and when the last one ends; from 0 on."""
    texts = table[column]
    times_s = np.asarray(pd.to_numeric(texts, errors="coerce"), dtype=np.float64)
    if np.isnan(times_s).all():
        dates = pd.to_datetime(texts, errors="coerce", utc=True, format="ISO8601")
        times_s = np.asarray((dates - dates.iloc[0]).dt.total_seconds(), dtype=np.float64)
    wrong = ~np.isfinite(times_s)
    wrong[1:] |= ~(np.diff(times_s) > 0)
    if wrong.any():
        line = int(np.argmax(wrong))
        raise InvalidInput(
            f"{column!r} is {texts.iloc[line]!r} in line {line + FIRST_LINE}; times must be "
            "seconds or dates such as 2013-01-31T06:00:00 that rise from line to line."
        )
    if len(times_s) < 2:
        raise InvalidInput("the file has one value; give step_s, which says how long it lasts.")
    return np.asarray(np.append(times_s, 2 * times_s[-1] - times_s[-2]) - times_s[0])


def _factor(peak_per_s: object, greatest: float) -> float:
    if greatest == 0:
        raise InvalidInput("every value of the file is 0; they cannot be scaled to a peak.")
    return positive(peak_per_s, "peak_per_s") / greatest


def positive(value: object, field: str) -> float:
    """A finite number above 0, or a sentence that names the field."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < np.inf:
        raise InvalidInput(f"{field} is {value!r}; it must be a finite number above 0.")
    return float(value)
