"""Bounds that no policy could keep are refused; those that one could are not."""

from dataclasses import replace
from typing import Any

import pytest

from penstock.config import Settings
from penstock.errors import InvalidInput
from penstock.sim.arena import run_policy
from penstock.sim.feasible import most_in_time
from penstock.sim.scenario_file import scenario_of


def document(
    bound_s: float, rate_per_s: float = 40.0, trigger_s: float = 0.0, arrivals: str = "poisson",
    share: float = 0.99,
) -> dict[str, Any]:  # fmt: skip
    rate = {"profile": "constant", "rate_per_s": rate_per_s}
    return {
        "scenario": {
            "name": "a", "duration": 600, "max_latency": bound_s, "share": share, "step": 0.05,
            "jobs_per_step": 1000,
        },
        "batch": {"fixed": 1, "trigger": trigger_s},
        "source": [{"name": "rows", "rate": rate, "arrivals": arrivals}],
        "operator": [{"name": "work", "from": ["rows"], "service": {"mean": 1e-6}}],
    }  # fmt: skip


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (document(1.5),
         "max_latency is 1.5 s, but a batch without any row takes 1 s .batch. and rows wait for "
         r"the one before it: at most 52\.\d+% of the results can be in time, and share is 0.99; "
         r"give at least 1\.99 s"),
        (document(0.5), r"at most 0% .* give at least 1\.99 s"),
        (document(5.0, trigger_s=6.0),
         r"rows wait up to 6 s .batch.trigger. for it to begin: at most 66.66% .* at least 6.94 s"),
        (document(1.4, share=0.5), r"give at least 1\.5 s"),
    ],
)  # fmt: skip
def test_a_bound_that_cannot_be_kept_is_refused(given: dict[str, Any], sentence: str) -> None:
    with pytest.raises(InvalidInput, match=sentence):
        scenario_of(given)


@pytest.mark.parametrize(
    "given",
    [
        document(1.99), document(1.5, share=0.5), document(6.94, trigger_s=6.0),
        document(1.1, rate_per_s=0.01),  # hardly any row finds a batch under way
        document(1.1, rate_per_s=0.5, arrivals="regular"),
    ],
)  # fmt: skip
def test_a_bound_that_can_be_kept_is_not(given: dict[str, Any]) -> None:
    assert scenario_of(given).max_latency_s == given["scenario"]["max_latency"]


@pytest.mark.parametrize("arrivals", ["poisson", "regular"])
@pytest.mark.parametrize("trigger_s", [0.0, 3.0])
@pytest.mark.parametrize("rate_per_s", [0.3, 1.0, 3.0, 40.0])
@pytest.mark.parametrize("bound_s", [1.2, 1.7, 2.5, 3.5])
def test_no_run_has_more_in_time(
    arrivals: str, trigger_s: float, rate_per_s: float, bound_s: float
) -> None:
    given = document(bound_s, rate_per_s, trigger_s, arrivals)
    given["scenario"]["max_latency"] = 100
    scenario = replace(scenario_of(given), max_latency_s=bound_s)
    most = most_in_time(scenario)
    found = run_policy(scenario, Settings(policy="static")).in_time_share
    chance = 0.0 if arrivals == "regular" else 3 * (0.25 / (600 * rate_per_s)) ** 0.5
    assert found <= most + chance + 0.02
    if rate_per_s == 40.0:
        assert found == pytest.approx(most, abs=0.04)
