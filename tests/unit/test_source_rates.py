"""Rates of sources that count once a batch: over the time between counts, not over a period."""

import math
from pathlib import Path

import pytest

from penstock.model.sources import Streams
from penstock.model.topology import Source
from penstock.spark.sources.reader import LOGS
from penstock.spark.sources.running.kinds import running_source
from penstock.spark.sources.running.source import SourceRates
from penstock.spark.sources.status import write_status
from penstock.spark.sources.watch import SourceWatch


def rates_of(folder: Path) -> SourceRates:
    source = Source("reports", Streams(files="in", schema="n BIGINT"))
    return SourceRates({"reports": running_source(source, watch=SourceWatch(folder))})


def count(folder: Path, at_s: float, rows: int, began_s: float = 0.0) -> None:
    directory = folder / "reports" / LOGS / "0"
    directory.mkdir(parents=True, exist_ok=True)
    write_status(directory, {"at_s": at_s, "began_s": began_s, "arrived_rows": rows})


def test_batches_that_do_not_fit_the_period_do_not_make_the_rate_jump(tmp_path: Path) -> None:
    rates = rates_of(tmp_path)
    found = []
    for period in range(1, 7):
        batches = [2.0 * n for n in range(1, 1 + int(3.0 * period // 2.0))]
        count(tmp_path, batches[-1], int(100 * batches[-1]))
        found.append(rates.take(3.0 * period)[0])
    assert math.isnan(found[0])
    assert found[1:] == pytest.approx([100.0] * 5)


def test_what_waited_at_the_start_is_no_rate(tmp_path: Path) -> None:
    rates = rates_of(tmp_path)
    assert rates.take(1.0) == (0.0, 0.0)  # a topology may have no such source
    count(tmp_path, 2.0, 10_000)
    first, unseen = rates.take(2.0)
    assert math.isnan(first)
    assert unseen == 0.0
    count(tmp_path, 4.0, 10_100)
    assert rates.take(4.0) == (50.0, 0.0)


def test_rows_that_came_since_the_last_count_are_estimated(tmp_path: Path) -> None:
    rates = rates_of(tmp_path)
    count(tmp_path, 1.0, 0)
    rates.take(1.0)
    count(tmp_path, 3.0, 300)
    assert rates.take(5.0) == (150.0, 300.0)
    assert rates.take(7.0) == (150.0, 600.0)  # a batch that takes long
    count(tmp_path, 7.0, 300)
    assert rates.take(7.0) == (0.0, 0.0)


def test_a_new_runner_counts_on(tmp_path: Path) -> None:
    rates = rates_of(tmp_path)
    count(tmp_path, 10.0, 1_000)
    rates.take(10.0)
    count(tmp_path, 12.0, 50, began_s=11.0)  # of which it cannot tell what is new
    assert rates.take(12.0)[0] == 0.0
    count(tmp_path, 14.0, 250, began_s=11.0)
    assert rates.take(14.0)[0] == 100.0
