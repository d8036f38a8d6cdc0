"""What the measurer of components apart makes of batches and of bulks."""

import math
from dataclasses import fields

import numpy as np
import pytest

from penstock.errors import InvalidInput
from penstock.model.observation import TaskCpu
from penstock.spark.channels.entries import Chunk, Entry
from penstock.spark.handles import TaskColumns
from penstock.spark.measure.apart import scv_of_bulks
from penstock.spark.measure.cpu_shares import NodeTime, node_times, task_cpus
from penstock.spark.measure.flows import Flow
from penstock.spark.measure.service_estimate import Batch, ServiceEstimate
from penstock.spark.run.apart import parse_processors


def test_the_cost_of_tasks_is_not_taken_for_service() -> None:
    random = np.random.default_rng(1)
    estimate = ServiceEstimate()
    for _ in range(60):
        rows = int(random.integers(5, 200))
        busy_s = 2 * 0.15 + random.exponential(0.02, rows).sum()
        estimate.add(Batch(rows, 2, busy_s))
    found = estimate.service()
    assert found.row_s == pytest.approx(0.02, rel=0.15)
    assert found.task_s == pytest.approx(0.15, rel=0.3)
    assert found.scv == pytest.approx(1.0, abs=0.5)


def test_batches_of_one_size_give_the_plain_ratio() -> None:
    estimate = ServiceEstimate()
    assert math.isnan(estimate.service().row_s)
    for _ in range(20):
        estimate.add(Batch(100, 2, 3.0))
    assert estimate.service().row_s == pytest.approx(0.03)
    assert estimate.service().scv == 1.0


def test_rows_that_come_together_vary_as_bulks_do() -> None:
    bulks = [Entry(n, "w", n, 8 * n, (Chunk("c", 8),), float(n)) for n in range(20)]
    assert scv_of_bulks(bulks) == pytest.approx(7.0), "one gap of 8 mean gaps, seven of none"
    singles = [Entry(n, "w", n, n, (Chunk("c", 1),), float(n)) for n in range(20)]
    assert scv_of_bulks(singles) == pytest.approx(0.0)
    assert scv_of_bulks(bulks[:2]) == 1.0, "not known yet"


@pytest.mark.parametrize("text", ["", "a", "a=", "a=0", "a=x", "=3", "a=1,a=2", "a=-1"])
def test_processors_are_read_or_refused(text: str) -> None:
    assert parse_processors("a=1, b=20") == {"a": 1, "b": 20}
    with pytest.raises(InvalidInput, match="COMPONENT=NUMBER"):
        parse_processors(text)


def test_rates_are_told_over_a_few_bulks() -> None:
    flow = Flow()
    for second in range(60):
        bulk = 30 if second % 3 == 0 else 0
        flow.add(float(second), 1.0, bulk, bulk / 10)
    assert flow.rows_per_s == pytest.approx(10.0, rel=0.1)
    assert flow.busy_share == pytest.approx(1.0, rel=0.1)
    for second in range(60, 80):
        flow.add(float(second), 1.0, 0, 0.0)
    assert flow.rows_per_s == 0.0


def test_cpu_of_tasks_and_of_those_beside_them() -> None:
    """Two components on one node of two slots, and one of them on another node too."""
    times = {
        "parse": {"1": NodeTime(cpu_s=1.0, run_s=2.0)},
        "match": {"1": NodeTime(3.0, 3.0), "2": NodeTime(0.5, 1.0)},
    }
    found = task_cpus(times, {"parse": 1.0, "match": 1.2}, {"1": 2, "2": 2})
    # Of match's 1.2 processors three quarters are on node 1, all of it computing: 0.9 of two CPUs.
    assert found["parse"] == (TaskCpu(0.5, (pytest.approx(0.45),)),)
    # Beside it parse uses half of one processor's time: 0.5 of two CPUs.
    assert found["match"] == (TaskCpu(1.0, (pytest.approx(0.25),)), TaskCpu(0.5))


def test_cpu_time_is_added_up_by_node() -> None:
    def tasks(**columns: list[object]) -> TaskColumns:
        size = len(columns["executor"])
        made = {
            field.name: np.zeros(size, dtype=np.int64) if field.name not in columns
            else np.array(columns[field.name])
            for field in fields(TaskColumns)
        }  # fmt: skip
        return TaskColumns(**made)

    stage = tasks(
        executor=["1", "1", "2"],
        status=["SUCCESS", "FAILED", "SUCCESS"],
        run_time_ms=[1000, 9000, 500],
        cpu_time_ns=[800_000_000, 9_000_000_000, 500_000_000],
    )
    assert node_times([stage, stage]) == {
        "1": NodeTime(pytest.approx(1.6), 2.0), "2": NodeTime(1.0, 1.0)
    }  # fmt: skip
