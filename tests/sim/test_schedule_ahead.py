"""A rush that a schedule announces is met by executors that serve when it begins."""

import pytest

from penstock.config import Settings
from penstock.model.decision import USUAL_START_UP_S
from penstock.scaling.policies.static import Static
from penstock.sim.run import SimulationResult, simulate
from penstock.sim.scenario_file import scenario_of

RUSH_S, PERIOD_S = 600.0, 5.0
RUSH = "00:10-18:00 min 4"


def run_with(schedule: str, start_up_s: float) -> SimulationResult:
    """Little to do, and from 00:10 on as much as keeps three executors busy."""
    steps = [[RUSH_S, 20], [300, 150]]
    scenario = scenario_of(
        {
            "scenario": {"name": "rush", "duration": 900, "max_latency": 5, "period": PERIOD_S},
            "cluster": {"max_executors": 4, "startup": start_up_s},
            "source": [{"name": "cabs", "rate": {"profile": "steps", "steps": steps}}],
            "operator": [{"name": "work", "from": ["cabs"], "service": {"mean": 0.02}}],
        }
    )
    return simulate(scenario, Static(), settings=Settings(schedule=schedule))


def asked_at_s(run: SimulationResult, executors: int) -> float:
    """When so many were asked for, for the first time."""
    made = (step.decision for step in run.steps if step.decision is not None)
    return next(one.at_s for one in made if one.guarded.processors >= executors)


def test_before_any_start_was_seen_the_usual_one_is_allowed_for() -> None:
    run = run_with(RUSH, USUAL_START_UP_S)
    assert asked_at_s(run, 4) == RUSH_S - USUAL_START_UP_S
    assert run.in_time_share > 0.99


@pytest.mark.parametrize("night", ["", "00:02-00:10 max 1; ", "00:02-24:00 max 4; "])
def test_a_limit_of_the_night_does_not_keep_the_day_s_executors_away(night: str) -> None:
    """The first start takes long, and is known when the rush comes."""
    run = run_with(f"00:01-00:02 min 2; {night}{RUSH}", 60.0)
    assert RUSH_S - 60.0 - 3 * PERIOD_S <= asked_at_s(run, 4) <= RUSH_S - 60.0
    assert run.in_time_share > 0.99


def test_a_limit_holds_until_then() -> None:
    run = run_with(f"00:01-00:02 min 2; 00:02-00:10 max 1; {RUSH}", 60.0)
    later = [at for at, seen in enumerate(run.observations) if seen.at_s > 300.0]
    assert all(run.executors[at] == 1 for at in later if run.observations[at].at_s < RUSH_S - 80)
