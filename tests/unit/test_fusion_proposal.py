"""Plans proposed from what was measured, and plans as documents."""

import json

import numpy as np
import pytest

from penstock.errors import InvalidInput
from penstock.fusion.proposal import propose_fusion
from penstock.fusion.statistics import STATE_ROW_BYTES, measured_graph
from penstock.model.observation import (
    ComponentObservation,
    KeyGroups,
    Observation,
    OperatorObservation,
)
from penstock.model.plan import Component, QueryPlan, TopologyPlan
from penstock.model.plan_document import (
    Fusion,
    Group,
    Order,
    PlanChange,
    change_document,
    plan_document,
    read_change,
    read_plan,
)

KEYS = {"clean": (), "speeds": ("vehicle", "segment"), "tolls": ("segment",)}
STREAMS = [(None, "clean"), ("clean", "speeds"), ("speeds", "tolls")]
STATEFUL = frozenset({"speeds", "tolls"})


def observation(at_s: float, rate: float) -> Observation:
    groups = KeyGroups(np.array([3.0, 1.0]), np.array([2e4, 1e4]), np.array(["1", "1"]))
    parts = [("clean", None), ("speeds", groups), ("tolls", groups)]
    return Observation(
        at_s, 5.0, rate, 0.0,
        operators=(
            OperatorObservation("clean", rate, rate),
            OperatorObservation("speeds", rate, rate / 2),
            OperatorObservation("tolls", rate / 2, 1.0),
        ),
        components=tuple(
            ComponentObservation(name, (name,), rate, 1e-5, 2, 1.0, key_groups=group)
            for name, group in parts
        ),
    )  # fmt: skip


def test_histograms_hold_the_rows_and_state_of_each_window_and_key_group() -> None:
    graph = measured_graph(
        [observation(5.0, 100.0), observation(10.0, 0.0)], KEYS, STREAMS, STATEFUL
    )
    assert graph is not None
    assert graph.input_rows[1].tolist() == [[375.0, 125.0]]  # a window without rows says nothing
    assert graph.state_rows[1].tolist() == [[2e4 / STATE_ROW_BYTES, 1e4 / STATE_ROW_BYTES]]
    assert graph.total_rows == pytest.approx(500.0 + 250.0)


def test_nothing_is_proposed_before_a_row_was_seen() -> None:
    assert measured_graph([observation(5.0, 0.0)], KEYS, STREAMS, STATEFUL) is None


def test_operators_that_share_a_key_are_proposed_with_the_gain_expected() -> None:
    graph = measured_graph([observation(5.0 * n, 1e4) for n in range(12)], KEYS, STREAMS, STATEFUL)
    assert graph is not None
    decision = propose_fusion(graph, [])
    assert [set(g.operators) & STATEFUL for g in decision.plan.groups] == [STATEFUL]
    assert decision.plan.groups[0].key == ("segment",)
    assert decision.plan.gain > 0.3
    assert decision.reasons[0].startswith("expected gain")
    again = propose_fusion(graph, [group.operators for group in decision.plan.groups])
    assert again.plan.gain == 0
    assert again.reasons[0].startswith("plan kept")


@pytest.mark.parametrize(
    "change",
    [
        Fusion((Group(("a", "b_2"), ("x", "y")), Group(("c + d", "e"), ("p, q", "(z)")))),
        Fusion(()),
        Order(("few > many", "named")),
    ],
    ids=str,
)
def test_a_change_of_plan_survives_its_document(change: PlanChange) -> None:
    assert read_change(json.loads(json.dumps(change_document(change))), "f") == change


def test_a_plan_survives_a_file() -> None:
    plan = TopologyPlan((QueryPlan("q", (Component("c", ("a",), ("k",)),), ("out",)),), ("why",))
    assert read_plan(json.loads(json.dumps(plan_document(plan))), "f") == plan
    answer = {"components": [{"operators": ["a", "b"], "key": ["k"], "adaptation_cost": 0}]}
    assert read_plan(answer, "f") == (Group(("a", "b"), ("k",)),)


@pytest.mark.parametrize(
    ("document", "words"),
    [
        ([], "neither 'queries'"),
        ({"queries": 3}, "queries is '3'; give a list"),
        ({"queries": [{"name": "", "components": [], "sinks": []}]}, "name is ''; give a name"),
        ({"components": [{"operators": [1], "key": []}]}, "operators holds '1'"),
    ],
)
def test_a_plan_that_cannot_be_read_is_refused(document: object, words: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        read_plan(document, "plan.json")
    assert words in str(refused.value)


def test_a_plan_that_would_share_no_other_shuffle_is_kept_and_gains_nothing() -> None:
    keys = {"clean": (), "speeds": ("vehicle",)}
    streams = [(None, "clean"), ("clean", "speeds")]
    graph = measured_graph([observation(5.0, 100.0)], keys, streams, frozenset({"speeds"}))
    assert graph is not None
    decision = propose_fusion(graph, [("clean",), ("speeds",)])
    assert (decision.plan.groups, decision.plan.gain) == ((), 0.0)
    assert decision.reasons[0].startswith("plan kept: no other operators would do better to share")
