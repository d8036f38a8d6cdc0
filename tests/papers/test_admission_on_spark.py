"""What a race of strategies on Spark declares of its streams."""

import tomllib
from pathlib import Path

import numpy as np
import pytest

from experiments.admission.on_spark.race import QUIET_S, SHORT_PERIOD_S, Lap, Race, _declared
from experiments.admission.on_spark.whole import LATE_CABS, SEED_CABS, Course
from experiments.admission.workloads.streams import WORKLOADS, stream_workload
from penstock.spark.sources.declared import read_declared


@pytest.mark.parametrize("name", WORKLOADS)
def test_meta_data_is_declared_with_its_phase_from_joining(name: str) -> None:
    workload = stream_workload(name, np.random.default_rng(1), 4, 3)
    joined_s = QUIET_S - 2 * SHORT_PERIOD_S  # two periods before the first row
    tables = tomllib.loads(_declared(workload.metadata, joined_s))["streams"]
    assert len(tables) == 4
    known = workload.metadata
    for row in range(4):
        declared = tables[f"s{row}"]
        assert declared["greatest_rate"] == known.greatest_rate_per_s[row]
        assert ("phase" in declared) == (not np.isnan(known.phase_periods[row]))
        if "phase" in declared:
            ahead_s = 2 * SHORT_PERIOD_S
            place = (declared["phase"] + ahead_s) % declared["period"] / SHORT_PERIOD_S
            assert place == pytest.approx(known.phase_periods[row])


def test_a_lap_weighs_latency_by_rows_and_counts_redirections_by_period() -> None:
    lap = Lap(redirected=[4, 4, 10], latency_s=[(1, 4.0), (3, 2.0)])
    assert lap.mean_latency_s == 2.5
    assert Race({"ard": lap}, 3.0, 0, 3).redirected_per_period("ard") == 2.0


def test_cabs_of_the_whole_system_say_when_they_burst(tmp_path: Path) -> None:
    """What is declared of each agrees with what it does, from when it joins."""
    course = Course(100.0)
    file = tmp_path / "streams.toml"
    file.write_text(course.declared())
    declared = read_declared(file).streams
    assert len(declared) == SEED_CABS + LATE_CABS
    for cab, joined_s in ((0, 0.0), (SEED_CABS, 20.0)):
        known = declared[f"cab{cab}.json"]
        for at_s in (21.0, 34.0, 36.0, 59.0, 61.0, 69.0):
            place_s = (known["phase"] + at_s - joined_s) % known["period"]
            rate = known["greatest_rate"] if place_s < known["burst"] else known["least_rate"]
            assert course.rates_per_s(at_s)[cab] == rate, (cab, at_s)
    assert course.rates_per_s(10.0)[SEED_CABS:].sum() == course.rates_per_s(71.0)[-1] == 0.0
