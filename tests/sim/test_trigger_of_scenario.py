"""Policies plan with the interval of batches that the scenario has, and with no other."""

from dataclasses import replace
from pathlib import Path

import pytest

from penstock.config import Settings
from penstock.sim.arena import run_policy
from penstock.sim.replay import candidates
from penstock.sim.scenario import Scenario
from penstock.sim.scenario_file import load_scenario

FILE = Path(__file__).parents[2] / "examples/scenarios/overload.toml"


@pytest.fixture
def scenario() -> Scenario:
    found = load_scenario(FILE)
    return replace(found, duration_s=150.0, batch=replace(found.batch, trigger_s=3.0))


def test_a_policy_knows_when_batches_start(scenario: Scenario) -> None:
    def told(interval_s: float) -> Settings:
        return Settings(policy="promise", policy_options={"trigger_interval_s": interval_s})

    plain = run_policy(scenario, Settings(policy="promise", batch_interval_s=30.0))
    assert plain == run_policy(scenario, told(3.0))
    assert plain != run_policy(scenario, told(0.0))


def test_so_does_one_that_a_plan_tries(scenario: Scenario) -> None:
    def seconds(options: dict[str, float]) -> float:
        settings = Settings(policy_options=options)
        ((found, _),) = candidates(scenario, settings, ["promise"], [])
        return found.executor_seconds

    assert seconds({}) == seconds({"trigger_interval_s": 3.0})
    assert seconds({}) != seconds({"trigger_interval_s": 0.0})
