"""What a batch costs beside the work of its tasks."""

import math

import pytest

from penstock.spark.measure.batch_work import QueryWork
from penstock.spark.measure.progress import BatchReport
from penstock.spark.measure.together import _batches, overhead_s


def report(batch: int, duration_s: float, rows: int = 100) -> BatchReport:
    return BatchReport("q", batch, 0.0, duration_s, rows, {})


def work(busy_s: float, *batches: int) -> QueryWork:
    return QueryWork({"a": busy_s}, {}, {}, frozenset(batches))


def test_it_is_what_the_batches_of_that_work_took_beyond_it() -> None:
    found = overhead_s([report(1, 2.0), report(2, 3.0), report(3, 0.1, rows=0)], work(4.0, 1, 2), 2)
    assert found == pytest.approx((5.0 - 2.0) / 2)
    assert overhead_s([report(1, 1.0)], work(4.0, 1), 2) == 0.0
    assert math.isnan(overhead_s([report(3, 0.1, rows=0)], work(0.0, 3), 2))


def test_a_batch_whose_tasks_are_not_known_yet_is_not_one_without_overhead() -> None:
    seen = _batches([report(1, 2.0)], math.nan)
    assert seen is not None
    assert math.isnan(seen.mean_overhead_s)
