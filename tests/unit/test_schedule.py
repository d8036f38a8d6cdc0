"""Least and most executors by time of day and week."""

from datetime import UTC, datetime

import pytest

from penstock.config.sources import from_keywords
from penstock.control.resolved_settings import resolved_settings
from penstock.errors import InvalidInput
from penstock.model.schedule import read_schedule


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
