"""What admission foresees reaches the loop's observation, and what tasks cost reaches admission."""

import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from penstock.control.clock import WallClock
from penstock.model.observation import Observation
from penstock.model.sinks import Memory
from penstock.model.sources import Admission, Streams
from penstock.model.topology import Topology
from penstock.spark.measure.together import SparkMeasurer
from penstock.spark.run.together import RunningTopology
from penstock.workloads.generator import Generator
from penstock.workloads.profiles import constant
from spark.run_to import LIMIT_S

pytestmark = pytest.mark.spark

WAIT_S, RATE_PER_S, STREAMS, PEAK_PER_S = 0.001, 40.0, 5, 600.0


def topology() -> Topology:
    made = Topology("foreseen", max_latency="20s")
    streams = {f"g{n}": Generator(constant(RATE_PER_S), seed=n) for n in range(STREAMS)}
    metas = {"g0": {"greatest_rate": PEAK_PER_S, "transition": "jump"}}
    admission = Admission(period="1s", horizon=3)
    made.source("many", Streams(generators=streams, admission=admission, options={"metas": metas}))

    def waiting(batches: Iterator[Any]) -> Iterator[Any]:
        import time

        for batch in batches:
            time.sleep(WAIT_S * batch.num_rows)
            yield batch

    @made.operator("many")
    def slow(many: Any) -> Any:
        return many.mapInArrow(waiting, many.schema)

    made.sink("out", "slow", Memory())
    return made


def test_the_loop_sees_what_is_foreseen_and_lanes_learn_what_they_can_serve(
    session: SparkSession, tmp_path: Path
) -> None:
    with RunningTopology(topology(), session, tmp_path / "state") as running:
        measurer, clock = SparkMeasurer(running), WallClock()
        deadline = time.monotonic() + LIMIT_S
        while time.monotonic() < deadline:
            clock.wait_s(1.0)
            seen = measurer.observe()
            if seen is not None and seen.sources and _carries(seen) < 1 / WAIT_S:
                break
        else:
            pytest.fail("no lane has learnt its capacity")
    source = seen.sources[0]
    expected = PEAK_PER_S + (STREAMS - 1) * RATE_PER_S
    assert source.foreseen_rate_per_s == pytest.approx(expected, rel=0.2)
    assert source.foreseen_horizon_s == 3.0
    assert source.rate_per_s == pytest.approx(STREAMS * RATE_PER_S, rel=0.2)
    assert seen.foreseen_rate_per_s == pytest.approx(expected, rel=0.3)
    assert 0 < _carries(seen) < 1 / WAIT_S, "a lane carries no more than a task can work off"


def _carries(seen: Observation) -> float:
    """What the newest decision takes a lane for."""
    said = [made.reasons[0] for one in seen.sources for made in one.decisions]
    found = re.findall(r"a lane carries ([0-9.e+]+)", " ".join(said))
    return float(found[-1]) if found else float("inf")
