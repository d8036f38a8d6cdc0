"""`promise` where batches begin at an interval, as the demo's do and many attached queries' do."""

from dataclasses import replace
from pathlib import Path

import pytest

from penstock.config import Settings
from penstock.sim.arena import run_policy
from penstock.sim.scenario import Scenario
from penstock.sim.scenario_file import scenario_of

MINUTES = 10


def small(interval: str, share: float = 0.99, rate_per_s: float = 60.0) -> Scenario:
    """One executor is enough at a tenth to a third of its two processors."""
    return scenario_of(
        {
            "scenario": {"name": "interval", "duration": f"{MINUTES}m", "max_latency": "5s",
                         "share": share, "seed": 1},
            "cluster": {"executors": 1, "max_executors": 8, "slots": 2, "startup": "8s"},
            "batch": {"fixed": "0.25s", "trigger": interval},
            "source": [{"name": "rows", "rate": {"profile": "constant", "rate_per_s": rate_per_s}}],
            "operator": [{"name": "work", "from": ["rows"],
                          "service": {"mean": "10ms", "kind": "deterministic"}}],
        },
        Path(),
    )  # fmt: skip


@pytest.mark.parametrize("interval", ["2s", "4s"])
def test_no_more_executors_than_the_load_needs(interval: str) -> None:
    scenario = small(interval, rate_per_s=20.0)
    found = run_policy(scenario, Settings(policy="promise"))
    assert found.in_time_share >= 0.99
    assert found.executor_seconds == pytest.approx(MINUTES * 60, rel=0.1)


def test_a_bound_little_above_the_interval_costs_more_the_higher_the_share() -> None:
    """At 4 s and a bound of 5 s, 99% of the rows leave a batch 1.04 s, half of them 3 s."""
    costs = []
    for share in (0.5, 0.9, 0.99):
        asked = small("4s", share)
        cluster = replace(asked.cluster, slots=1, executors=8)  # enough until it is measured
        scenario = replace(asked, cluster=cluster)
        found = run_policy(scenario, Settings(policy="promise", share=share))
        assert found.in_time_share >= share
        costs.append(found.executor_seconds)
    assert costs[0] < 0.75 * costs[-1]
    assert costs == sorted(costs)
