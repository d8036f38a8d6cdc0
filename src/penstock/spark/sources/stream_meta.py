"""What people say of streams beforehand, and what the strategies make of it.

Spans of time are durations ("24h", "30m", or plain seconds) and mean the same whatever the period
of the source is. `daily = "09:00-17:00"` says that a stream is high in these hours of each day, by
the clock of the machine. A slope is the change of a rate in a second, or "300/h".
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import fields
from datetime import datetime
from functools import lru_cache
from typing import Any

import numpy as np

from penstock.errors import InvalidInput
from penstock.forecast.metadata import NAMES, StreamMetadata, metadata_from, nothing_known
from penstock.model.day_spans import read_spans
from penstock.model.durations import parse_duration_s
from penstock.model.observation import Floats

Meta = Mapping[str, Any]

RATES = ("expected_rate", "least_rate", "greatest_rate")
SPANS = ("period", "phase", "burst", "idle", "lifetime")
DAILY, HIGH_FROM_S = "daily", "high_from_s"  # as people say it; the second of the day it begins
WORDS = (*NAMES, DAILY)
CYCLE = {"period", "phase", "burst", "idle", HIGH_FROM_S}
DAY_S = 86_400.0


def understood(stream: str, meta: Meta) -> dict[str, Any]:
    """Meta-data in seconds and rows per s, or a sentence with what is wrong with it."""
    known: dict[str, Any] = {}
    for key, value in meta.items():
        try:
            known |= _item(key, value)
        except InvalidInput as error:
            raise InvalidInput(f"stream {stream!r}: {error}") from error
    if DAILY in meta and {"period", "phase", "burst", "idle"} & meta.keys():
        raise InvalidInput(
            f"stream {stream!r}: daily already says period, phase, burst and idle; give it or them."
        )
    try:
        metadata_from([{key: value for key, value in known.items() if key in NAMES}])
    except InvalidInput as error:
        said = str(error).removeprefix("streams[0].meta.")
        raise InvalidInput(f"stream {stream!r}: {said}") from error
    return known


def merged(known: Meta, more: Meta) -> dict[str, Any]:
    """What is known with what is said further, which counts where both say something."""
    if more.keys() & CYCLE and (HIGH_FROM_S in known or HIGH_FROM_S in more):
        known = {key: value for key, value in known.items() if key not in CYCLE}
    return {**known, **more}


def contradiction(meta: Meta) -> str | None:
    """What in meta-data from several places does not agree, in one clause."""
    return _contradiction(tuple(sorted(meta.items())))


@lru_cache(maxsize=1024)  # many streams are told the same by a pattern
def _contradiction(meta: tuple[tuple[str, Any], ...]) -> str | None:
    try:
        metadata_from([{key: value for key, value in meta if key in NAMES}])
    except InvalidInput as error:
        return str(error).removeprefix("streams[0].meta.").rstrip(".")
    return None


def in_periods(metas: Sequence[Meta], joined_s: Floats, period_s: float) -> StreamMetadata:
    """Columns for the strategies, which count in periods from when streams joined."""
    described = [row for row, meta in enumerate(metas) if meta]
    known = metadata_from(
        [_in_periods(metas[row], float(joined_s[row]), period_s) for row in described]
    )
    if len(described) == len(metas):
        return known
    every = nothing_known(len(metas))  # of most streams, as a rule
    for column in fields(every):
        getattr(every, column.name)[described] = getattr(known, column.name)
    return every


def _item(key: str, value: Any) -> dict[str, Any]:
    if key == DAILY:
        return _daily(value)
    if key == HIGH_FROM_S:  # understood before, and kept in the control file
        return {key: float(value)}
    if key not in NAMES:
        raise InvalidInput(f"{key!r} is unknown; allowed: {', '.join(WORDS)}.")
    if key == "transition":
        return {key: value}
    if key in SPANS:
        nothing = value == 0 and value is not False
        return {key: 0.0 if nothing else parse_duration_s(value, key)}
    if key == "slope":
        return {key: _slope(value)}
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < np.inf:
        raise InvalidInput(f"{key} is {value!r}; give a number of at least 0, in rows per s.")
    return {key: float(value)}


def _daily(value: Any) -> dict[str, Any]:
    spans: tuple[tuple[int, int], ...] = ()
    with suppress(InvalidInput):
        spans = read_spans(value, DAILY) if isinstance(value, str) else ()
    if len(spans) != 1:
        raise InvalidInput(
            f"{DAILY} is {value!r}; write one span between 00:00 and 23:59, such as '09:00-17:00'."
        )
    start, end = (minutes * 60.0 for minutes in spans[0])
    return {"period": DAY_S, "burst": (end - start) % DAY_S, HIGH_FROM_S: start}


def _slope(value: Any) -> float:
    number, per, unit = str(value).partition("/")
    try:
        if isinstance(value, bool) or (per and not unit.strip()):
            raise ValueError
        return float(number) / (parse_duration_s(f"1{unit.strip()}", "slope") if per else 1.0)
    except (ValueError, InvalidInput) as error:
        raise InvalidInput(
            f"slope is {value!r}; give the change of its rate in a second, or as '300/h'."
        ) from error


def _in_periods(meta: Meta, joined_s: float, period_s: float) -> dict[str, Any]:
    counted = {key: value for key, value in meta.items() if key in NAMES}
    if HIGH_FROM_S in meta:
        counted["phase"] = (_second_of_day(joined_s) - meta[HIGH_FROM_S]) % DAY_S
    for key in SPANS:
        if key in counted:
            counted[key] /= period_s
    if "slope" in counted:
        counted["slope"] *= period_s
    return counted


def _second_of_day(at_s: float) -> float:
    local = datetime.fromtimestamp(at_s).astimezone()
    return local.hour * 3600.0 + local.minute * 60.0 + local.second
