"""What is drawn: thinning hides no late result, and moves are seen."""

from contract.fakes import observation
from dashboard.histories import period
from penstock.control.records import DecisionRecord
from penstock.dashboard.series import (
    changed_places,
    columns,
    component_columns,
    forecast_columns,
    load,
    thinned,
)
from penstock.model.decision import Decision, ScalingPlan
from penstock.model.observation import ComponentObservation


def test_thinning_keeps_the_worst_of_each_part_and_the_newest() -> None:
    latency_s = [0.1] * 1000
    latency_s[377] = 9.0
    kept = thinned(latency_s, most=50)
    assert len(set(kept)) == 50
    assert 377 in kept
    assert kept[-1] == 999
    assert kept == sorted(kept)


def test_a_short_run_is_drawn_whole() -> None:
    assert thinned([0.1] * 50, most=50) == list(range(50))


def test_a_component_that_comes_later_has_gaps_before() -> None:
    seen = [
        observation(5.0, components=(ComponentObservation("a", (), 1.0, 0.1, 2, 1.0),)),
        observation(10.0, components=(ComponentObservation("b", (), 2.0, 0.1, 2, 1.0),)),
    ]
    columns = component_columns(seen)
    assert str(columns["a"]["arrival_rate_per_s"]) == "[1.0, nan]"
    assert str(columns["b"]["arrival_rate_per_s"]) == "[nan, 2.0]"


def test_moves_are_groups_found_elsewhere_than_before() -> None:
    seen = [period(1, ("1", "2", "1")), period(2, ("1", "1", "")), period(3, ("1", "1", "2"))]
    moves = changed_places(seen)
    assert [(m["group"], m["from"], m["to"]) for m in moves] == [(1, "2", "1")]


def test_without_executors_there_is_no_load() -> None:
    assert str(load(observation())) == "nan"
    assert str(columns([observation()])["latency_mean_s"]) == "[nan]"


def test_what_is_foreseen_never_runs_backwards() -> None:
    """24 s ahead until an executor's start-up is known, then 9 s: the newer word counts."""

    def decided(at_s: float, ahead_s: float, rate_per_s: float) -> DecisionRecord:
        plan = ScalingPlan({}, 2)
        numbers = {"ahead_s": ahead_s, "load_per_s": rate_per_s}
        return DecisionRecord(at_s, "promise", plan, Decision(plan, numbers=numbers), plan)

    drawn = forecast_columns([decided(0, 24, 100), decided(3, 24, 200), decided(6, 9, 300)], 15.0)
    assert drawn["at_s"] == [15.0]
    assert drawn["rate_per_s"] == [300.0]
    drawn = forecast_columns([decided(0, 9, 100), decided(3, 9, 200), decided(6, 24, 300)], 15.0)
    assert drawn["at_s"] == [9.0, 12.0, 30.0]
