"""Least and most executors by time of day and week: 'mon-fri 08:00-18:00 min 4; sun max 2'.

Times are UTC, as those of `excluded-times`. A rule without days holds every day, one without times
all day; a span that ends before it begins goes on into the next day.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from penstock.errors import InvalidInput, shown

DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
DAY_MINUTES, WEEK_MINUTES = 24 * 60, 7 * 24 * 60
EXAMPLE = "'mon-fri 08:00-18:00 min 4; sat,sun max 2'"
_FIRST_MONDAY_S = 4 * 86_400  # 1970-01-05
_MOST_DIGITS = 7
_RULE = re.compile(
    r"(?:(?P<days>[a-z]{3}(?:-[a-z]{3})?(?:,[a-z]{3}(?:-[a-z]{3})?)*)\s+)?"
    r"(?:(?P<start>(?:[01]\d|2[0-3]):[0-5]\d)-(?P<end>(?:[01]\d|2[0-4]):[0-5]\d)\s+)?"
    r"(?P<which>min|max)\s+(?P<count>[0-9]+)"
)


@dataclass(frozen=True)
class Rule:
    """Executors between two minutes of the week; `end` may lie in the week after."""

    start: int
    end: int
    least: int | None
    most: int | None


@dataclass(frozen=True)
class Schedule:
    """Rules that hold at some times of the week."""

    rules: tuple[Rule, ...]

    def between(self, from_s: float, until_s: float) -> tuple[int | None, int | None]:
        """Least executors for all of a time, and the most at its beginning; None where free.

        What must be there at the end of the time must be asked for at its beginning; what may not
        be there any more can go when its time comes.
        """
        start = ((from_s - _FIRST_MONDAY_S) / 60) % WEEK_MINUTES
        end = start + (until_s - from_s) / 60
        least = [r.least for r in self.rules if r.least is not None and _overlap(r, start, end)]
        most = [r.most for r in self.rules if r.most is not None and _overlap(r, start, start)]
        return max(least, default=None), min(most, default=None)


def read_schedule(text: str, field: str) -> Schedule:
    """The rules of a text, or a sentence that says what is wrong with it.

    >>> read_schedule("mon 08:00-09:00 min 4", "schedule").rules
    (Rule(start=480, end=540, least=4, most=None),)
    """
    rules = [
        rule for part in text.split(";") if part.strip() for rule in _rules(part.strip(), field)
    ]
    if not rules:
        raise InvalidInput(f"{field} is {shown(text)}; write rules such as {EXAMPLE}, or off.")
    _refuse_contradictions(rules, field)
    return Schedule(tuple(rules))


def _rules(part: str, field: str) -> Iterable[Rule]:
    match = _RULE.fullmatch(part.lower())
    if match is None:
        raise InvalidInput(f"{field} has {shown(part)}; write rules such as {EXAMPLE}.")
    if len(match["count"]) > _MOST_DIGITS:
        raise InvalidInput(
            f"{field} has {shown(part)}; a number of executors has at most {_MOST_DIGITS} digits."
        )
    count = int(match["count"])
    if count < 1:
        raise InvalidInput(f"{field} has {shown(part)}; at least 1 executor is allowed.")
    start, end = _minute(match["start"] or "00:00"), _minute(match["end"] or "24:00")
    if start == end or end > DAY_MINUTES:
        raise InvalidInput(
            f"{field} has {shown(part)}; a span ends at another time, 24:00 at the most."
        )
    length = (end - start) % DAY_MINUTES or DAY_MINUTES
    least, most = (count, None) if match["which"] == "min" else (None, count)
    for day in _days(match["days"], part, field):
        begin = day * DAY_MINUTES + start
        yield Rule(begin, begin + length, least, most)


def _days(text: str | None, part: str, field: str) -> list[int]:
    if text is None:
        return list(range(7))
    found = []
    for span in text.split(","):
        ends = span.split("-")
        if any(end not in DAYS for end in ends):
            raise InvalidInput(f"{field} has {shown(part)}; days are {', '.join(DAYS)}.")
        first, last = DAYS.index(ends[0]), DAYS.index(ends[-1])
        found += [(first + n) % 7 for n in range((last - first) % 7 + 1)]
    return sorted(set(found))


def _minute(text: str) -> int:
    hours, minutes = text.split(":")
    return int(hours) * 60 + int(minutes)


def _overlap(rule: Rule, start: float, end: float) -> bool:
    """Whether a rule holds at some time between two minutes, one of them of this week."""
    return any(
        rule.start + week < max(end, start + 1e-9) and start < rule.end + week
        for week in (-WEEK_MINUTES, 0, WEEK_MINUTES)
    )


def _refuse_contradictions(rules: list[Rule], field: str) -> None:
    found = [
        (start, low.least, high.most)
        for low in rules
        for high in rules
        if low.least is not None and high.most is not None and low.least > high.most
        for start in _beginnings(low, high)
    ]
    if not found:
        return
    start, least, most = min(found)
    day, minute = divmod(start, DAY_MINUTES)
    raise InvalidInput(
        f"{field} asks for at least {least} and at most {most} executors at the same time, on "
        f"{DAYS[day]} {minute // 60:02}:{minute % 60:02}."
    )


def _beginnings(one: Rule, other: Rule) -> Iterable[int]:
    """Minutes of the week from which on both hold."""
    for week in (-WEEK_MINUTES, 0, WEEK_MINUTES):
        start = max(one.start, other.start + week)
        if start < min(one.end, other.end + week):
            yield start % WEEK_MINUTES
