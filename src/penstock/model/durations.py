"""Spans of time as people write them: `5s`, `250ms`, `2 minutes`, or plain seconds."""

import math
import re

from penstock.errors import InvalidInput, shown

_SECONDS = {
    "ms": 1e-3, "millisecond": 1e-3, "milliseconds": 1e-3,
    "s": 1.0, "sec": 1.0, "second": 1.0, "seconds": 1.0,
    "m": 60.0, "min": 60.0, "minute": 60.0, "minutes": 60.0,
    "h": 3600.0, "hour": 3600.0, "hours": 3600.0,
    "d": 86_400.0, "day": 86_400.0, "days": 86_400.0,
}  # fmt: skip
_FORM = re.compile(r"\s*([0-9]*\.?[0-9]+)\s*([a-z]*)\s*", re.IGNORECASE)


def parse_duration_s(value: str | float, field: str) -> float:
    """Seconds of a duration, or a sentence that names the field.

    >>> parse_duration_s("250ms", "max_latency")
    0.25
    """
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise InvalidInput(f"{field} is {shown(value)}; write a duration such as '5s' or '250ms'.")
    if isinstance(value, str):
        match = _FORM.fullmatch(value)
        unit = (match.group(2).lower() or "s") if match else ""
        if match is None or unit not in _SECONDS:
            raise InvalidInput(
                f"{field} is {shown(value)}; write a duration such as '5s' or '250ms'."
            )
        seconds = float(match.group(1)) * _SECONDS[unit]
    else:
        try:
            seconds = float(value)
        except OverflowError:  # an integer of hundreds of digits
            seconds = math.inf
    if not math.isfinite(seconds) or seconds <= 0:
        raise InvalidInput(f"{field} is {shown(value)}; it must be a finite duration above zero.")
    return seconds
