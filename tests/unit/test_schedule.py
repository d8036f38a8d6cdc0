"""Least and most executors by time of day and week."""

from datetime import UTC, datetime

import numpy as np
import pytest

from penstock.config.sources import from_keywords
from penstock.control.resolved_settings import resolved_settings
from penstock.errors import InvalidInput
from penstock.model.schedule import DAYS, read_schedule


def at(day: int, hour: int, minute: int = 0) -> float:
    """A moment of the week that began on Monday, 2 January 2023."""
    return datetime(2023, 1, 2 + day, hour, minute, tzinfo=UTC).timestamp()


RUSH = read_schedule("mon-fri 08:00-18:00 min 4; sat,sun max 2; 22:00-02:00 min 2", "schedule")


@pytest.mark.parametrize(
    ("moment", "expected"),
    [
        (at(0, 9), (4, None)),
        (at(0, 18), (None, None)),
        (at(5, 9), (None, 2)),
        (at(6, 23), (2, 2)),
        (at(0, 1), (2, None)),  # the night of Sunday goes on
        (at(2, 7, 59), (None, None)),
    ],
)
def test_rules_hold_at_their_time(moment: float, expected: tuple[int | None, int | None]) -> None:
    assert RUSH.between(moment, moment) == expected


def test_what_must_be_there_soon_is_needed_now() -> None:
    assert RUSH.between(at(2, 7, 59), at(2, 8, 1)) == (4, None)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("mon-fri 08:00-18:00", "write rules such as"),
        ("noday 08:00-18:00 min 4", "write rules such as"),
        ("xyz 08:00-18:00 min 4", "days are mon, tue"),
        ("08:00-08:00 min 4", "ends at another time"),
        ("08:00-25:00 min 4", "write rules such as"),
        ("min 0", "at least 1 executor"),
        ("", "write rules such as"),
        ("mon 08:00-10:00 min 4; mon 09:00-11:00 max 2", "at least 4 and at most 2 .* mon 09:00"),
    ],
)
def test_a_schedule_that_says_nothing_or_two_things_is_refused(text: str, words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        read_schedule(text, "schedule")


def test_a_schedule_beyond_the_limits_is_refused_by_their_names() -> None:
    given = from_keywords({"schedule": "min 9", "executors_max": 4})
    with pytest.raises(InvalidInput, match="schedule asks for at least 9 executors; executors_max"):
        resolved_settings(given)
    with pytest.raises(InvalidInput, match="allows at most 1 executors; executors_min is 2"):
        resolved_settings(from_keywords({"schedule": "max 1", "executors_min": 2}))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (f"min {'9' * 5001}", r"schedule has 'min 9{30,40}\.\.\.'; .* at most 7 digits"),
        ("min 12345678", "at most 7 digits"),
        ("min 00000001", "at most 7 digits"),
        (f"xyz {'9' * 5001}", r"schedule has 'xyz 9{30,40}\.\.\.'; write rules"),
        ("mon 09:00-12:00 max 1; sun 19:00-12:30 min 3", "at most 1 .* on mon 09:00"),
        ("sun 23:00-02:00 min 3; mon max 1", "on mon 00:00"),
        ("mon 01:00-01:30 max 1; 20:00-04:00 min 3", "on mon 01:00"),
    ],
)
def test_what_is_wrong_is_named_in_a_short_sentence(text: str, words: str) -> None:
    with pytest.raises(InvalidInput, match=words) as refused:
        read_schedule(text, "schedule")
    assert len(str(refused.value)) < 250


Span = tuple[int, int, int, str, int]  # day, from and until, min or max, executors


def _minutes(span: Span) -> set[int]:
    """Of the week, in which it holds, one by one."""
    day, start, end, _, _ = span
    length = (end - start) % 1440 or 1440
    return {(day * 1440 + start + n) % 10_080 for n in range(length)}


def _text(span: Span) -> str:
    day, start, end, which, count = span
    clock = f"{start // 60:02}:{start % 60:02}-{end // 60:02}:{end % 60:02}"
    return f"{DAYS[day]} {clock} {which} {count}"


def _span(rng: np.random.Generator, which: str) -> Span:
    day, start = int(rng.choice([0, 0, 1, 6, 6])), int(rng.integers(1440))
    end = (start + int(rng.integers(1, 1440))) % 1440
    return (day, start, end, which, int(rng.integers(1, 4)))


@pytest.mark.parametrize("seed", range(200))
def test_a_contradiction_is_named_by_the_first_minute_at_which_it_begins(seed: int) -> None:
    rng = np.random.default_rng(seed)
    lows, highs = ([_span(rng, name) for _ in range(rng.integers(1, 3))] for name in ("min", "max"))
    clashes = [_minutes(a) & _minutes(b) for a in lows for b in highs if a[4] > b[4]]
    begin = [m for both in clashes for m in both if (m - 1) % 10_080 not in both]
    text = "; ".join(_text(span) for span in (*highs, *lows))
    if not begin:
        assert len(read_schedule(text, "schedule").rules) == len(lows) + len(highs)
        return
    day, minute = divmod(min(begin), 1440)
    with pytest.raises(
        InvalidInput, match=f"on {DAYS[day]} {minute // 60:02}:{minute % 60:02}\\.$"
    ):
        read_schedule(text, "schedule")
