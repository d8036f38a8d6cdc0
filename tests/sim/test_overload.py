"""The last resort and the interval of batches on a simulated cluster, under the real loop."""

from dataclasses import replace

import pytest

from penstock.config import Settings
from penstock.control.actions import ShedLoad, UseVariants
from penstock.scaling.policies.registry import policy
from penstock.sim.run import SimulationResult, simulate
from penstock.sim.scenario import (
    BatchCost,
    ClusterSpec,
    OperatorSpec,
    Scenario,
    SourceSpec,
    Upstream,
)
from penstock.sim.service import ServiceTime
from penstock.workloads.profiles import steps

# At most 4 processors of 50 rows a second each; between 100 and 300 s there come 300 a second.
OVERLOAD = Scenario(
    "overload", 600.0, 5.0,
    (SourceSpec("in", steps([(100, 80), (200, 300), (300, 80)])),),
    (OperatorSpec("lookup", (Upstream("in"),), ServiceTime("exponential", 0.02), cheaper=0.6),),
    ClusterSpec(max_executors=4), batch=BatchCost(0.3),
)  # fmt: skip
SETTINGS = Settings(resort_after_s=10, resort_undo_after_s=20)


def run(scenario: Scenario = OVERLOAD, **options: object) -> SimulationResult:
    settings = replace(SETTINGS, **options)  # type: ignore[arg-type]
    return simulate(scenario, policy("ds2"), settings=settings)


def without_form(scenario: Scenario) -> Scenario:
    return replace(scenario, operators=(replace(scenario.operators[0], cheaper=1.0),))


def test_each_step_of_the_last_resort_keeps_more_results_in_time() -> None:
    nothing = run(without_form(OVERLOAD))
    form = run()
    both = run(shed_at_most=0.3)
    assert nothing.shed_rows == form.shed_rows == 0
    assert nothing.in_time_share < form.in_time_share < both.in_time_share
    assert 0 < both.shed_rows < 0.3 * both.arrived_rows
    assert both.arrived_rows == both.results.count + both.held_rows + both.shed_rows


def test_it_begins_at_the_limit_and_ends_with_the_load() -> None:
    result = run(shed_at_most=0.3)
    done = [(step.at_s, o.action) for step in result.steps for o in step.room_outcomes]
    assert isinstance(done[0][1], UseVariants)
    first_shed = next(n for n, (_, action) in enumerate(done) if isinstance(action, ShedLoad))
    assert first_shed == 1
    at_limit_s = next(s.at_s for s in result.steps if s.executors_before == 4)
    assert done[0][0] >= max(at_limit_s, 100.0) + 10
    assert done[-1][1] == UseVariants(())
    assert [action for _, action in done if isinstance(action, ShedLoad)][-1] == ShedLoad(0.0)
    assert 300 < done[-1][0] < 500
    assert result.executors[-1] < 4  # and executors leave after it
    for step in result.steps:
        for decision in step.room_decisions:
            assert decision.reasons or decision.infeasible


@pytest.mark.parametrize("name", ["ds2", "drs", "incremental"])
def test_nothing_is_resorted_to_without_overload(name: str) -> None:
    light = replace(OVERLOAD, sources=(SourceSpec("in", steps([(100, 50), (500, 120)])),))
    settings = replace(SETTINGS, shed_at_most=0.3)
    result = simulate(light, policy(name), settings=settings)
    assert not [step for step in result.steps if step.room_decisions]


def test_an_interval_saves_batches_and_the_bound_keeps() -> None:
    """The same rows with a third of the batches, where the load is low and the bound is wide."""
    low = replace(OVERLOAD, sources=(SourceSpec("in", steps([(600, 20)])),))
    busy, paced = run(without_form(low)), run(without_form(low), adapt_interval=True)
    assert paced.in_time_share > 0.99
    assert paced.results.quantile_s(0.95) < 5.0
    assert 3 * batches(paced) < batches(busy)


def test_an_interval_gives_way_when_the_load_rises() -> None:
    rising = without_form(
        replace(OVERLOAD, sources=(SourceSpec("in", steps([(200, 20), (400, 150)])),))
    )
    plain, paced = run(rising), run(rising, adapt_interval=True)
    assert paced.in_time_share > plain.in_time_share - 0.05


def batches(result: SimulationResult) -> int:
    return sum(seen.batches.count for seen in result.observations if seen.batches is not None)
