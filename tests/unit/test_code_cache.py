"""Advice on room for generated code: what it is made from, and when to keep quiet."""

from dataclasses import replace
from itertools import count

import pytest

from penstock.control.code_cache import (
    LEAST_CLASSES,
    PERIODS,
    CodeCacheAdvice,
    Period,
    advise_code_cache,
)
from penstock.model.compiled import Compiled
from penstock.model.observation import BatchObservation, Observation

SETTING = "spark.sql.codegen.cache.maxEntries"
COSTLY = Period(2, 4.0, Compiled(240, 2.0))


def advice(*periods: Period, entries: int = 100, enough: int = 2000) -> str | None:
    made = advise_code_cache(periods, 5.0, entries, enough)
    return None if made is None else made.what


def test_a_cache_that_every_batch_overflows_is_told() -> None:
    assert advice(*[COSTLY] * PERIODS) == (
        "the driver's JVM compiles 120 classes again in every batch, 1 s of work, because Spark "
        "keeps no more than 100 of them"
    )


@pytest.mark.parametrize(
    "periods",
    [
        [COSTLY] * (PERIODS - 1),  # too little seen
        [COSTLY] * (PERIODS - 1) + [replace(COSTLY, compiled=Compiled(4, 2.0))],  # now it is warm
        # What compares rows with a watermark is new each time.
        [replace(COSTLY, compiled=Compiled(2 * (LEAST_CLASSES - 1), 2.0))] * PERIODS,
        [replace(COSTLY, duration_s=40.0)] * PERIODS,  # it costs little
    ],
)
def test_nothing_is_said_where_more_room_would_win_little(periods: list[Period]) -> None:
    assert advice(*periods) is None


def test_nothing_is_said_where_there_is_room() -> None:
    assert advice(*[COSTLY] * PERIODS, entries=2000) is None


class Measured:
    """Two batches of 2 s in each period, but for every third, in which one still runs."""

    def __init__(self) -> None:
        self.period = 0

    def observe(self) -> Observation:
        self.period += 1
        batches = None if self.period % 3 == 0 else BatchObservation(2, 2.0, 0.1, 100.0)
        return Observation(5.0 * self.period, 5.0, 20.0, 0.0, batches=batches)


def test_the_advice_is_given_once_and_names_the_setting(caplog: pytest.LogCaptureFixture) -> None:
    times = count(1)

    def compiled() -> Compiled:
        time = next(times)
        return Compiled(200 * time, 2.0 * time)

    advising = CodeCacheAdvice(Measured(), compiled, 100, 2000, SETTING)
    seen = [advising.observe() for _ in range(6 * PERIODS)]
    decided = [made for one in seen if one is not None for made in one.decided]
    assert [made.room for made in decided] == ["generated code"]
    assert caplog.text.count(f"{SETTING}=2000") == 1


def test_what_cannot_be_counted_is_not_told() -> None:
    advising = CodeCacheAdvice(Measured(), lambda: None, 100, 2000, SETTING)
    assert all(
        seen is not None and not seen.decided
        for seen in (advising.observe() for _ in range(6 * PERIODS))
    )
