"""Equivalent forms of an operator: each is tried, the least costly is used and remembered."""

from dataclasses import replace
from pathlib import Path

import pytest

from penstock.control.actions import UseForms
from penstock.control.forms import ROOM, tried_before
from penstock.control.history.store import HistoryStore
from penstock.control.records import RunRecord
from penstock.errors import InvalidInput
from penstock.model.topology import Topology
from penstock.scaling.forms import FIRST, FormCosts, Trial, choose_form
from penstock.scaling.policies.static import Static
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
from penstock.workloads.profiles import constant

FORMS = (FIRST, "index", "vectorised")


def costs(**known: float) -> FormCosts:
    named = {FIRST if name == "first" else name: cost for name, cost in known.items()}
    return FormCosts().learnt([Trial("look_up", form, 100.0, c) for form, c in named.items()])


def chosen(in_use: str, known: FormCosts, rate: float = 100.0, may_try: bool = True) -> str:
    return choose_form("look_up", FORMS, in_use, rate, known, may_try).form


def test_every_form_is_tried_and_then_the_one_of_least_cost_is_used() -> None:
    assert chosen(FIRST, costs(first=0.02)) == "index"
    assert chosen("index", costs(first=0.02, index=0.03)) == "vectorised"
    assert chosen("vectorised", costs(first=0.02, index=0.01, vectorised=0.03)) == "index"
    assert chosen(FIRST, costs(first=0.02, index=0.0195, vectorised=0.03)) == FIRST, "noise"


def test_what_is_known_of_a_rate_says_nothing_of_another() -> None:
    known = costs(first=0.02, index=0.01, vectorised=0.03)
    assert chosen("index", known, rate=90.0) == "index"
    later = known.learnt([Trial("look_up", "index", 400.0, 0.05)])
    assert choose_form("look_up", FORMS, "index", 400.0, later, may_try=True).tried
    assert chosen("index", later, rate=400.0) == FIRST


def test_nothing_is_tried_while_results_are_late() -> None:
    assert chosen(FIRST, costs(first=0.02), may_try=False) == FIRST
    assert chosen(FIRST, costs(first=0.02, index=0.01), may_try=False) == "index"


def scenario(parts: dict[str, float]) -> Scenario:
    return Scenario(
        name="forms", duration_s=200.0, max_latency_s=5.0,
        sources=(SourceSpec("rows", constant(40.0)),),
        operators=(
            OperatorSpec(
                "look_up", (Upstream("rows"),), ServiceTime("deterministic", 0.02),
                forms=tuple(parts.items()),
            ),
        ),
        cluster=ClusterSpec(executors=2, max_executors=2), batch=BatchCost(0.25),
    )  # fmt: skip


def used(result: SimulationResult) -> list[dict[str, str]]:
    done = [o.action for step in result.steps for o in step.room_outcomes if o.done]
    return [dict(action.forms) for action in done if isinstance(action, UseForms)]


def test_the_loop_ends_in_the_form_that_costs_least() -> None:
    result = simulate(scenario({"index": 0.5, "vectorised": 2.0}), Static())
    assert used(result) == [{"look_up": "index"}, {"look_up": "vectorised"}, {"look_up": "index"}]
    decided = [d for step in result.steps for d in step.room_decisions if d.room == ROOM]
    assert "least work for each row" in decided[-1].reasons[0] + decided[-2].reasons[0]
    last = result.observations[-1]
    assert last.offered_load == pytest.approx(0.4, rel=0.1)


def test_a_form_that_is_no_better_is_given_up() -> None:
    assert used(simulate(scenario({"index": 1.5}), Static())) == [{"look_up": "index"}, {}]


def test_what_was_tried_is_in_the_history_and_is_not_tried_again(tmp_path: Path) -> None:
    given = scenario({"index": 0.5, "vectorised": 2.0})
    with HistoryStore(str(tmp_path / "history.db")) as store:
        kept = store.begin(RunRecord("forms", "static", 0.0, 5.0, 5.0))
        simulate(given, Static(), history=kept)
        kept.end(200.0)
        known = tried_before(store, "forms", given.forms)
        assert not tried_before(store, "other", given.forms).known
    assert {form: known.at("look_up", form, 40.0) for form in FORMS} == pytest.approx(
        {FIRST: 0.02, "index": 0.01, "vectorised": 0.04}, rel=0.1
    )
    again = simulate(given, Static(), form_costs=known)
    assert used(again) == [{"look_up": "index"}]


def test_forms_are_steps_by_name() -> None:
    road = Topology("road", "5s")
    road.add("look_up", "SELECT 1", "rows", forms={"index": "SELECT 2", "other": lambda rows: rows})
    assert road.forms == {"look_up": ("index", "other")}
    (operator,) = road.operators
    assert list(operator.other_forms) == ["look_up~index", "look_up~other"]
    assert operator.other_forms["look_up~index"].sql == "SELECT 2"
    both = replace(operator, cheaper="SELECT 0")
    assert list(both.other_forms) == ["look_up", "look_up~index", "look_up~other"]
    for wrong in ({"a b": "SELECT 1"}, {"a": 3}, ["SELECT 1"]):
        with pytest.raises(InvalidInput, match=r"forms"):
            road.add("x", "SELECT 1", "rows", forms=wrong)  # type: ignore[arg-type]
