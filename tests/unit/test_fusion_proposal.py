"""Plans proposed from what was measured, and plans as documents."""

import json

import numpy as np
import pytest

from penstock.errors import InvalidInput
from penstock.fusion.costs import Costs
from penstock.fusion.planner import ALGORITHMS
from penstock.fusion.proposal import ProposalRules, propose_fusion
from penstock.fusion.rebalancing import RebalancingRule
from penstock.fusion.statistics import HORIZON_S, STATE_ROW_BYTES, WINDOW_S, measured_graph
from penstock.model.observation import (
    ComponentObservation,
    KeyGroups,
    NodeObservation,
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
STREAMS = [("rows", "clean"), ("clean", "speeds"), ("speeds", "tolls")]
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
    measured = measured_graph(
        [observation(5.0, 100.0), observation(10.0, 0.0)], KEYS, STREAMS, STATEFUL
    )
    assert measured is not None
    rows = measured.graph
    windows = round(HORIZON_S / WINDOW_S)  # a period without rows says nothing
    assert rows.input_rows[1].tolist() == [[75.0 * WINDOW_S, 25.0 * WINDOW_S]] * windows
    held = [2e4 / STATE_ROW_BYTES, 1e4 / STATE_ROW_BYTES]
    assert rows.state_rows[1].tolist() == [held] * windows
    assert measured.entering_rows == pytest.approx(100.0 * HORIZON_S)
    assert rows.total_rows == pytest.approx(50.0 * HORIZON_S)


def test_nothing_is_proposed_before_a_row_was_seen() -> None:
    assert measured_graph([observation(5.0, 0.0)], KEYS, STREAMS, STATEFUL) is None


def test_operators_that_share_a_key_are_proposed_with_the_gain_expected() -> None:
    graph = measured_graph([observation(5.0 * n, 1e4) for n in range(12)], KEYS, STREAMS, STATEFUL)
    assert graph is not None
    decision = propose_fusion(graph, [])
    assert [set(g.operators) & STATEFUL for g in decision.plan.groups] == [STATEFUL]
    assert decision.plan.groups[0].key == ("segment",)
    assert decision.plan.gain == pytest.approx(1 / 3, abs=0.02)
    assert decision.reasons[0].startswith("expected gain")
    again = propose_fusion(graph, [group.operators for group in decision.plan.groups])
    assert again.plan.gain == 0
    assert again.reasons[0].startswith("plan kept")


def rates(**emitted: float) -> Observation:
    """A period in which each operator emitted so many rows a second, in the order of the flow."""
    arrived = [next(iter(emitted.values())), *emitted.values()]
    return Observation(
        5.0, 5.0, arrived[0], 0.0,
        operators=tuple(
            OperatorObservation(name, came, left)
            for (name, left), came in zip(emitted.items(), arrived, strict=False)
        ),
    )  # fmt: skip


@pytest.mark.parametrize(("second", "gain"), [(10.0, 0.0), (500.0, 1 / 3)])
def test_the_shuffle_into_the_first_keyed_operator_is_not_counted_as_saved(
    second: float, gain: float
) -> None:
    keys = {"clean": (), "first": ("k",), "second": ("k",)}
    edges = [("rows", "clean"), ("clean", "first"), ("first", "second")]
    seen = rates(clean=1000.0, first=second, second=1.0)
    measured = measured_graph([seen], keys, edges, frozenset())
    assert measured is not None
    decision = propose_fusion(measured, [])
    assert decision.plan.gain == pytest.approx(gain)
    if not gain:
        assert decision.reasons[0] == "plan kept: the best other plan would save 1.0% of its cost"


def skewed(at_s: float, state_bytes: float) -> Observation:
    """A steady stream with two heavy key groups."""
    groups = KeyGroups(
        np.array([4.0, 1.0, 1.0, 1.0] * 2), np.full(8, state_bytes), np.array(["1"] * 8)
    )
    return Observation(
        at_s, 5.0, 1000.0, 0.0,
        operators=(
            OperatorObservation("speeds", 1000.0, 1000.0),
            OperatorObservation("tolls", 1000.0, 1.0),
        ),
        components=tuple(
            ComponentObservation(name, (name,), 1000.0, 1e-5, 8, 1.0, key_groups=groups)
            for name in ("speeds", "tolls")
        ),
    )  # fmt: skip


@pytest.mark.parametrize("periods", [1, 7, 24, 120, 700])
@pytest.mark.parametrize(("state_bytes", "gain"), [(2e7, 1 / 6), (4e7, 0.0)])
def test_a_steady_stream_is_answered_alike_however_long_it_was_watched(
    periods: int, state_bytes: float, gain: float
) -> None:
    keys = {"speeds": ("vehicle", "segment"), "tolls": ("segment",)}
    edges = [("rows", "speeds"), ("speeds", "tolls")]
    seen = [skewed(5.0 * n, state_bytes) for n in range(periods)]
    measured = measured_graph(seen, keys, edges, frozenset(keys))
    assert measured is not None
    assert measured.graph.total_rows == pytest.approx(HORIZON_S * 1000.0)
    assert measured.entering_rows == pytest.approx(HORIZON_S * 1000.0)
    decision = propose_fusion(measured, [])
    assert decision.plan.gain == pytest.approx(gain, abs=0.01)


def test_beta_keeps_operators_apart_whose_component_would_move_more() -> None:
    keys = {"speeds": ("vehicle", "segment"), "tolls": ("segment",)}
    edges = [("rows", "speeds"), ("speeds", "tolls")]
    measured = measured_graph([skewed(5.0, 2e7)], keys, edges, frozenset(keys))
    assert measured is not None
    assert propose_fusion(measured, []).plan.groups
    assert not propose_fusion(measured, [], rules=ProposalRules(beta=1e5)).plan.groups


def by_direction(slots: int) -> list[Observation]:
    """Vehicles spread over all key groups; two directions, which fill two of them."""
    spread = KeyGroups(np.full(8, 1.0), np.full(8, 1e5), np.array(["1"] * 8))
    two = KeyGroups(np.array([4.0, 0, 4.0, 0.1, 0, 0, 0, 0.1]), np.zeros(8), np.array(["1"] * 8))
    return [
        Observation(
            5.0, 5.0, 1000.0, 0.0,
            operators=(
                OperatorObservation("cars", 1000.0, 1000.0),
                OperatorObservation("ways", 1000.0, 2.0),
            ),
            components=tuple(
                ComponentObservation(name, (name,), 1000.0, 1e-5, 8, 1.0, key_groups=group)
                for name, group in (("cars", spread), ("ways", two))
            ),
            nodes=(NodeObservation("1", slots, 1.0),),
        )
    ]  # fmt: skip


WAYS = {"cars": ("vehicle", "direction"), "ways": ("direction",)}


def test_the_shares_of_a_member_with_the_components_key_hold_for_the_component() -> None:
    edges = [("rows", "cars"), ("cars", "ways")]
    measured = measured_graph(by_direction(4), WAYS, edges, frozenset({"cars"}))
    assert measured is not None
    costs = Costs(measured.graph, RebalancingRule(capacity_rows=2 * 1000.0 * WINDOW_S / 2))
    assert costs.busy_groups(0b11) == 2
    # Both are hashed to one of two instances, so one moves once, with half of all state.
    all_state = 8 * 1e5 / STATE_ROW_BYTES
    assert costs.adaptation([0b11]) == pytest.approx(all_state / 2, rel=0.05)


@pytest.mark.parametrize(("slots", "fused"), [(2, True), (4, False)])
def test_operators_are_not_fused_by_a_key_with_fewer_busy_groups_than_processors(
    slots: int, fused: bool
) -> None:
    edges = [("rows", "cars"), ("cars", "ways")]
    measured = measured_graph(by_direction(slots), WAYS, edges, frozenset({"cars"}))
    assert measured is not None
    for algorithm in ALGORITHMS[:-1]:
        decision = propose_fusion(measured, [], algorithm)
        assert bool(decision.plan.groups) == fused, algorithm
    unknown = propose_fusion(measured, [], rules=ProposalRules(spread_known=False))
    assert unknown.plan.groups
    refused = "cars + ways are not fused by (direction): 2 of its key groups have work, for 4"
    assert any(reason.startswith(refused) for reason in decision.reasons) != fused


def test_an_operator_without_a_key_on_the_way_is_named_with_the_two_it_joins() -> None:
    keys = {"first": ("k",), "only": (), "second": ("k",)}
    edges = [("rows", "first"), ("first", "only"), ("only", "second")]
    seen = rates(first=900.0, only=800.0, second=1.0)
    measured = measured_graph([seen], keys, edges, frozenset())
    assert measured is not None
    decision = propose_fusion(measured, [("first", "only"), ("second",)])
    assert decision.plan.groups == (Group(("first", "only", "second"), ("k",)),)
    assert decision.plan.gain == pytest.approx(800 / 1700)
    hidden = measured_graph([seen], keys | {"only": None}, edges, frozenset())
    assert hidden is not None
    assert propose_fusion(hidden, []).plan.groups == ()


@pytest.mark.parametrize(("once", "gain"), [({"clean"}, 0.5), (set(), 0.0)])
def test_operators_that_read_the_same_rows_save_a_shuffle_where_one_can_serve_both(
    once: set[str], gain: float
) -> None:
    keys = {"clean": (), "left": ("k", "l"), "right": ("k",)}
    edges = [("rows", "clean"), ("clean", "left"), ("clean", "right")]
    seen = rates(clean=1000.0, left=1.0, right=1.0)
    measured = measured_graph([seen], keys, edges, frozenset(), frozenset(once))
    assert measured is not None
    plan = propose_fusion(measured, []).plan
    assert plan.gain == pytest.approx(gain)
    assert plan.present_cost == pytest.approx(2 * 1000.0 * HORIZON_S)
    assert bool(plan.groups) == bool(once)


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
    streams = [("rows", "clean"), ("clean", "speeds")]
    graph = measured_graph([observation(5.0, 100.0)], keys, streams, frozenset({"speeds"}))
    assert graph is not None
    decision = propose_fusion(graph, [("clean",), ("speeds",)])
    assert (decision.plan.groups, decision.plan.gain) == ((), 0.0)
    assert decision.reasons[0].startswith("plan kept: no other operators would do better to share")
