"""The share in time of the elastic benchmark: start-up beside it, lost rows in it."""

import json
import math
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from benchmarks._sink_latencies import PERIOD_S, Delivered, delivered, in_time


def rows(*batches: tuple[float, float, int]) -> Delivered:
    """Batches of so many rows each, by when they arrived and were committed."""
    arrived = np.concatenate([np.full(count, at) for at, _, count in batches])
    committed = np.concatenate([np.full(count, done) for _, done, count in batches])
    return Delivered(np.arange(len(arrived)), arrived, committed)


SLOW_START = ((0.0, 12.0, 500), (5.0, 13.0, 200))  # compiling, and what came meanwhile


def test_start_up_is_told_beside_the_share() -> None:
    found = in_time(rows(*SLOW_START, (20.0, 21.0, 90), (25.0, 32.0, 10)), 800, 5.0)
    assert (found.rows, found.lost, found.twice) == (800, 0, 0)
    assert found.share == pytest.approx(0.9)
    assert found.mean_s == pytest.approx(0.9 * 1.0 + 0.1 * 7.0)
    assert (found.startup_rows, found.startup_worst_s, found.startup_s) == (700, 12.0, 13.0)


def test_rows_that_never_came_out_were_not_in_time() -> None:
    found = in_time(rows(*SLOW_START, (20.0, 21.0, 100)), 900, 5.0)
    assert found.lost == 100
    assert found.share == pytest.approx(0.5)


def test_nothing_that_counts_is_no_share() -> None:
    found = in_time(rows(*SLOW_START), 700, 5.0)
    assert math.isnan(found.share)
    assert in_time(rows((0.0, 0.0, 0)), 10, 5.0).share == 0.0


def test_a_commit_log_is_read_once_for_each_file(tmp_path: Path) -> None:
    log = tmp_path / "_spark_metadata"
    log.mkdir()
    for number in range(2):
        table = pa.table({"vehicle": [2 * number, 2 * number + 1], "at": [1.0, 2.0]})
        pq.write_table(table, tmp_path / f"{number}.parquet")
    paths = [json.dumps({"path": f"file://{tmp_path}/{number}.parquet"}) for number in range(2)]
    (log / "0").write_text(f"v1\n{paths[0]}\n")
    (log / "1.compact").write_text("v1\n" + "\n".join(paths) + "\n")
    found = delivered(tmp_path)
    assert found.vehicle.tolist() == [0, 1, 2, 3]
    assert found.arrived_s.tolist() == [1.0, 2.0, 1.0, 2.0]


def test_periods_are_those_of_a_loop() -> None:
    assert PERIOD_S == 5.0
    one = in_time(rows((0.0, 1.0, 10), (1.0, 4.0, 10)), 20, 5.0)
    assert one.startup_rows == 20  # all in the period of the first results
