"""Advice on the number of key groups: what they cost, what would do, and when to keep quiet."""

from dataclasses import replace

import numpy as np
import pytest

from penstock.control.key_group_count import PERIODS, KeyGroupAdvice, advise_key_groups
from penstock.model.observation import (
    BatchObservation,
    ComponentObservation,
    KeyGroups,
    NodeObservation,
    Observation,
    StateObservation,
)


def observed(key_groups: int, rows: float, keyed: float = 1.0) -> Observation:
    """Batches of tasks that take 50 ms each, and a microsecond for each row.

    Key groups work for a share of the time, and other tasks for the rest.
    """
    slots, busy_s = 4, 0.05 * key_groups + 1e-6 * rows
    groups = KeyGroups(
        np.full(key_groups, keyed * 5.0), np.zeros(key_groups), np.full(key_groups, "1")
    )
    batch_s = busy_s / slots + 0.2
    return Observation(
        5.0, 5.0, rows, 0.0,
        components=(
            ComponentObservation("query", (), rows, 1e-6, slots, 2 * busy_s, tasks=key_groups,
                                 key_groups=groups),
        ),
        nodes=(NodeObservation("1", slots, busy_s),),
        batches=BatchObservation(2, batch_s, 0.2, rows),
    )  # fmt: skip


def advice(key_groups: int, rows: float, most: int = 4, periods: int = PERIODS) -> str | None:
    made = advise_key_groups([observed(key_groups, rows)] * periods, key_groups, most)
    return None if made is None else made.what


def test_two_hundred_key_groups_of_a_small_query_are_too_many() -> None:
    assert advice(200, 100.0) == (
        "the tasks of 200 key groups take about 2.5 s of each batch of 2.7 s; 8 would do for 4 "
        "processors and take 0.1 s"
    )


@pytest.mark.parametrize(
    ("key_groups", "rows", "most", "periods"),
    [
        (8, 100.0, 4, PERIODS),  # as many as would do
        (200, 1e6, 4, PERIODS),  # rows take the time, not tasks
        (200, 100.0, 100, PERIODS),  # so many processors may come
        (200, 100.0, 4, PERIODS - 1),  # too little seen
    ],
)
def test_nothing_is_said_where_another_number_would_win_little(
    key_groups: int, rows: float, most: int, periods: int
) -> None:
    assert advice(key_groups, rows, most, periods) is None


def test_fewer_key_groups_than_processors_leave_some_idle() -> None:
    assert advice(3, 1e6) == "3 key groups keep at most 3 of 4 processors busy; 8 would do for 4"


class Measured:
    def observe(self) -> Observation:
        return observed(200, 100.0)


def test_the_advice_is_given_once(caplog: pytest.LogCaptureFixture) -> None:
    advising = KeyGroupAdvice(Measured(), lambda: 200, 4)
    seen = [advising.observe() for _ in range(3 * PERIODS)]
    decided = [made for one in seen if one is not None for made in one.decided]
    assert [made.room for made in decided] == ["key groups"]
    assert "penstock key-groups CHECKPOINT 8" in caplog.text


class MeasuredSeldom:
    """Batches of three periods: their tasks work in all of them, and two see none end."""

    def __init__(self) -> None:
        self.period = 0

    def observe(self) -> Observation:
        self.period += 1
        seen = observed(200, 100.0)
        assert seen.batches is not None
        work = replace(seen.components[0], busy_s=seen.components[0].busy_s / 3)
        batches = None if self.period % 3 else replace(seen.batches, count=1)
        return replace(seen, components=(work,), batches=batches)


def test_batches_longer_than_a_period_are_told_too() -> None:
    advising = KeyGroupAdvice(MeasuredSeldom(), lambda: 200, 4)
    seen = [advising.observe() for _ in range(3 * PERIODS)]
    (made,) = (made for one in seen if one is not None for made in one.decided)
    assert "200 key groups take about 5 s of each batch" in made.what


def test_a_single_large_batch_does_not_silence_the_advice() -> None:
    window = [observed(200, 1e6), *[observed(200, 100.0)] * PERIODS]
    assert advise_key_groups(window, 200, 4) is not None


def test_too_few_key_groups_of_an_attached_query_are_told() -> None:
    seen = observed(3, 1e6)
    (query,) = seen.components
    assert query.key_groups is not None
    state = (StateObservation("state-0", query.key_groups),)
    attached = replace(seen, components=(replace(query, key_groups=None),), state=state)
    made = advise_key_groups([attached], 3, 4)
    assert made is not None
    assert made.what.startswith("3 key groups keep at most 3 of 4 processors busy")


def test_a_query_without_state_gets_no_advice() -> None:
    assert advise_key_groups([observed(200, 100.0)] * PERIODS, 0, 4) is None


def test_few_key_groups_are_enough_where_other_tasks_do_the_work() -> None:
    window = [observed(3, 1e6, keyed=0.3)] * PERIODS
    assert advise_key_groups(window, 3, 4) is None
