"""What the measurer says of a running query agrees with what the query did."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pyspark.sql import SparkSession

from penstock.control.clock import WallClock
from penstock.model.observation import Observation
from penstock.model.sinks import Memory
from penstock.model.topology import Topology
from penstock.spark.measure.together import SparkMeasurer
from penstock.spark.run.together import RunningTopology
from penstock.workloads.generator import Generator
from penstock.workloads.profiles import constant
from spark.run_to import LIMIT_S, until

pytestmark = pytest.mark.spark

KEY_GROUPS = 3
WAIT_S = 0.001


def road() -> Topology:
    made = Topology("measured", max_latency="20s")
    made.source("rows", Generator(constant(200.0), keys=30, seed=2, lanes=2, max_rows=300))

    def waiting(batches: Iterator[Any]) -> Iterator[Any]:
        import time

        for batch in batches:
            time.sleep(WAIT_S * batch.num_rows)
            yield batch

    @made.operator("rows")
    def slow(rows: Any) -> Any:
        return rows.mapInArrow(waiting, rows.schema)

    made.add("fast", "SELECT * FROM slow WHERE value > 0.75", "slow")

    @made.operator("fast")
    def counts(fast: Any) -> Any:
        return fast.withWatermark("at", "1 second").groupBy("key", "at").count()

    made.sink("out", "counts", Memory())
    return made


def test_an_observation_tells_rates_work_state_and_latency(
    session: SparkSession, tmp_path: Path
) -> None:
    with RunningTopology(road(), session, tmp_path / "c") as running:
        measurer = SparkMeasurer(running)
        observations = list(_until_measured(measurer))
        # Stateless work follows the processors at the next batch, without a restart.
        running.send_parallelism(3)
        until(
            lambda: (seen := measurer.observe()) is not None and seen.components[0].tasks == 3,
            poll_s=1.0,
        )
    last = observations[-1]
    assert last.arrival_rate_per_s == pytest.approx(200.0, rel=0.05)
    operators = {operator.name: operator for operator in last.operators}
    assert operators["slow"].selectivity == pytest.approx(1.0)
    assert operators["fast"].selectivity == pytest.approx(0.25, abs=0.15)
    assert operators["counts"].arrival_rate_per_s == operators["fast"].emission_rate_per_s

    reading, counting = last.components
    assert (reading.name, reading.operators) == ("rows", ("slow", "fast"))
    assert reading.service_time_s > WAIT_S
    assert reading.arrival_rate_per_s == pytest.approx(200.0, rel=0.05)
    assert counting.arrival_rate_per_s == pytest.approx(50.0, rel=0.6)
    assert counting.key_groups is not None
    assert len(counting.key_groups.load_s) == KEY_GROUPS
    assert (counting.key_groups.state_bytes > 0).all()
    assert set(counting.key_groups.node) == {"driver"}
    assert reading.key_groups is None
    assert (reading.tasks, counting.tasks) == (2, KEY_GROUPS)

    stages = next(one.stages for one in observations if one.stages)
    (counted,) = [stage for stage in stages if stage.component == counting.name]
    assert (counted.tasks, counted.rows > 0) == (KEY_GROUPS, True)
    assert 0 <= counted.state_s <= counted.run_s <= counted.task_s
    assert [stage.rows for stage in stages if stage is not counted] == [0]

    assert last.latency is not None
    assert 0 < last.latency.mean_s <= last.latency.p95_s <= last.latency.share_s
    assert last.latency.share_s <= last.latency.max_s
    assert last.batches is not None
    assert last.batches.mean_duration_s > last.batches.mean_overhead_s > 0
    assert last.backlog_rows >= 0
    assert last.processors == 2
    assert np.isfinite(last.batches.mean_rows)


def _until_measured(measurer: SparkMeasurer) -> Iterator[Observation]:
    """Observe until a period has everything, or the limit is over."""
    clock, deadline = WallClock(), time.monotonic() + LIMIT_S
    while time.monotonic() < deadline:
        clock.wait_s(2.0)
        seen = measurer.observe()
        assert seen is not None
        yield seen
        if not seen.missing and seen.batches is not None and seen.latency is not None:
            return
    pytest.fail(f"not measured within {LIMIT_S} s: {seen.missing}")
