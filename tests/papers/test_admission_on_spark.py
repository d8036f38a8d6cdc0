"""What a race of strategies on Spark declares of its streams."""

import tomllib

import numpy as np
import pytest

from experiments.admission.on_spark.race import QUIET_S, SHORT_PERIOD_S, Lap, Race, _declared
from experiments.admission.workloads.streams import WORKLOADS, stream_workload


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
