"""Strategies race over the same arrivals on the real source."""

import numpy as np
import pytest
from pyspark.sql import SparkSession

from experiments.admission.on_spark.race import SETTLING_PERIODS, SHORT_PERIOD_S, run_race
from experiments.admission.workloads.streams import stream_workload
from penstock.model.sources import Admission

pytestmark = [pytest.mark.spark, pytest.mark.long]


def test_all_entrants_get_the_same_rows_and_are_watched(session: SparkSession) -> None:
    workload = stream_workload("psfcw", np.random.default_rng(3), 8, SETTLING_PERIODS + 6)
    capacity = workload.mean_total_per_s / 2
    entrants = {
        name: Admission(strategy=name, lane_capacity=capacity, period=SHORT_PERIOD_S)
        for name in ("ard", "par")
    }
    race = run_race(session, workload, entrants)
    rows = {name: sum(count for count, _ in lap.latency_s) for name, lap in race.laps.items()}
    # Nothing is queued, as lanes may take all; sources are asked one after the other, and what
    # arrives between two of them is counted by the later only.
    assert rows["ard"] == pytest.approx(rows["par"], rel=0.05)
    assert rows["ard"] > 0
    for lap in race.laps.values():
        assert len(lap.lanes) == len(lap.queued_rows) > 2
        assert lap.mean_latency_s > 0
