"""Moments of a run as people write them: by the clock, with the day, or so far into the run."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from penstock.errors import InvalidInput
from penstock.model.durations import parse_duration_s

if TYPE_CHECKING:
    from penstock.control.records import RunRecord


def moment_s(text: str, option: str, run: RunRecord) -> float:
    """Unix time of a moment; a time of day is the first of that name after the run began.

    Whole seconds count to their end: what a history shows as 14:05:30 is found by that.
    """
    try:
        return run.started_at_s + parse_duration_s(text, option)
    except InvalidInput:
        return _by_the_clock_s(text.strip(), option, run.started_at_s)


def _by_the_clock_s(text: str, option: str, started_at_s: float) -> float:
    began = datetime.fromtimestamp(started_at_s, tz=UTC).astimezone()
    try:
        if "-" in text:
            found = datetime.fromisoformat(text)
            found = found if found.tzinfo else found.astimezone()
        else:
            hours, minutes, *rest = (int(part) for part in text.split(":"))
            (seconds,) = rest or (0,)
            found = began.replace(hour=hours, minute=minutes, second=seconds, microsecond=0)
            found += timedelta(days=1 if found + timedelta(seconds=1) <= began else 0)
        return found.timestamp() + (0.0 if found.microsecond else 0.999_999)
    except (ValueError, OverflowError, OSError) as error:
        raise InvalidInput(
            f"{option} is {text!r}; write a time of day such as 14:05:30, a date and time such as "
            "2026-05-01T14:05, or how far into the run, such as 90s."
        ) from error
