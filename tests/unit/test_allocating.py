"""Key groups in the loop: what moves, what waits, what it learns."""

from typing import Any

import numpy as np
import pytest

from contract.fakes import (
    FakeActuator,
    FakeHistory,
    FakeMeasurer,
    FakePolicy,
)
from contract.fakes import (
    observation as plain_observation,
)
from contract.loops import loop_over
from penstock.control.actions import MigrationCost, MoveKeyGroups, Outcome, SetExecutors
from penstock.control.allocating import Allocating, AllocationRules
from penstock.control.key_groups import key_group_table
from penstock.control.step import Step
from penstock.model.decision import Limits
from penstock.model.observation import (
    BatchObservation,
    ComponentObservation,
    GroupTraffic,
    KeyGroups,
    LatencyObservation,
    NodeObservation,
    Observation,
)

BATCHES = BatchObservation(3, 1.0, 0.5, 500.0)
MILP = AllocationRules("milp", time_limit_s=0.02)


def observation(at_s: float = 1000.0, **changes: Any) -> Observation:
    """One in which some batches ended."""
    return plain_observation(at_s, **({"batches": BATCHES} | changes))


def component(name: str, load_s: list[float], nodes: list[str], size: float = 1e6) -> Any:
    groups = KeyGroups(np.array(load_s), np.full(len(load_s), size), np.array(nodes, dtype=np.str_))
    return ComponentObservation(name, (name,), 100.0, 0.01, 4, sum(load_s), key_groups=groups)


def nodes(*names: str, slots: int = 1) -> tuple[NodeObservation, ...]:
    return tuple(NodeObservation(name, slots, 1.0) for name in names)


def skewed(at_s: float = 1000.0, **more: Any) -> Observation:
    """Four key groups on node 1 and none on node 2."""
    parts = (component("sum", [1.0, 1.0, 1.0, 1.0], ["1"] * 4),)
    return observation(at_s, components=parts, nodes=nodes("1", "2"), **more)


def test_a_skewed_placement_is_balanced() -> None:
    record = Allocating(MILP).plan(skewed(), wanted=2, dry_run=False)
    assert record is not None
    assert {move.node for move in record.moves} == {"2"}
    assert len(record.moves) == 2
    assert (record.load_distance, record.planned_distance) == (pytest.approx(40.0), 0.0)


def test_what_is_balanced_well_enough_is_left_alone() -> None:
    parts = (component("sum", [1.0, 1.1], ["1", "2"]),)
    even = observation(components=parts, nodes=nodes("1", "2"))
    record = Allocating(MILP).plan(even, wanted=2, dry_run=False)
    assert record is not None
    assert record.moves == ()
    assert "tolerance" in record.reasons[0]


def test_nothing_is_planned_on_a_period_without_batches() -> None:
    assert Allocating(MILP).plan(skewed(batches=None), wanted=2, dry_run=False) is None


def test_a_batch_that_took_several_periods_is_a_share_of_all_of_them() -> None:
    """Or nodes would look as if they did more than they can, and one of them never be removed."""
    rules, several = Allocating(MILP), plain_observation().period_s * 3
    parts = (component("sum", [several / 4] * 4, ["1", "1", "2", "2"]),)
    busy = tuple(NodeObservation(name, 1, several / 6) for name in ("1", "2"))
    for _ in range(2):
        waiting = observation(components=parts, nodes=busy, batches=None)
        assert rules.plan(waiting, wanted=1, dry_run=False) is None
    record = rules.plan(observation(components=parts, nodes=busy), wanted=1, dry_run=False)
    assert record is not None
    assert record.holds_scaling is None
    assert record.leaving == ("2",)
    assert record.load_distance == pytest.approx(50.0)  # each has 50, and 1 is to have 100


def test_no_more_moves_than_allowed() -> None:
    rules = AllocationRules("milp", max_migrations=1, time_limit_s=0.02)
    record = Allocating(rules).plan(skewed(), wanted=2, dry_run=False)
    assert record is not None
    assert len(record.moves) == 1


def test_key_groups_of_a_lost_node_are_placed_outside_the_budget() -> None:
    parts = (component("sum", [1.0] * 4, ["gone", "gone", "gone", "2"]),)
    lost = observation(components=parts, nodes=nodes("1", "2"))
    record = Allocating(AllocationRules("milp", max_migrations=1)).plan(lost, 2, False)
    assert record is not None
    assert {move.key_group for move in record.moves} >= {0, 1, 2}


def test_a_new_node_receives_key_groups() -> None:
    parts = (component("sum", [1.0] * 4, ["1", "1", "2", "2"]),)
    grown = observation(components=parts, nodes=nodes("1", "2", "3"))
    record = Allocating(MILP).plan(grown, wanted=3, dry_run=False)
    assert record is not None
    assert "3" in {move.node for move in record.moves}


def test_the_node_that_is_cheapest_to_empty_is_drained_over_rounds() -> None:
    parts = (component("sum", [1.0, 1.0, 1.0], ["1", "1", "2"]),)
    seen = observation(components=parts, nodes=nodes("1", "2"))
    record = Allocating(MILP).plan(seen, wanted=1, dry_run=False)
    assert record is not None
    assert record.leaving == ("2",)
    assert [(move.key_group, move.node) for move in record.moves] == [(2, "1")]
    assert record.left_on_leaving == 0


def test_a_budget_too_small_to_drain_is_said_and_the_best_is_done() -> None:
    parts = (component("sum", [1.0] * 5, ["1", "1", "1", "2", "2"]),)
    seen = observation(components=parts, nodes=nodes("1", "2"))
    rules = AllocationRules("milp", max_migrations=1, time_limit_s=0.02)
    record = Allocating(rules).plan(seen, wanted=1, dry_run=False)
    assert record is not None
    assert (len(record.moves), record.left_on_leaving) == (1, 1)
    assert record.infeasible is not None
    assert "draining" in record.infeasible


def test_measured_costs_change_what_fits_the_budget() -> None:
    allocating = Allocating(AllocationRules("milp", max_cost_s=0.3, time_limit_s=0.02))
    before = allocating.plan(skewed(), wanted=2, dry_run=False)
    assert before is not None
    assert len(before.moves) == 2
    action = MoveKeyGroups(before.moves)
    for _ in range(4):
        allocating.learn(Outcome(action, True, "", 1.0, MigrationCost(2, 2e6, 2.0, 1.0)))
    after = allocating.plan(skewed(), wanted=2, dry_run=False)
    assert after is not None
    assert after.moves == ()


def test_collocation_is_measured_and_albic_raises_it() -> None:
    traffic = GroupTraffic(
        "a", "b", np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1]), np.array([90.0, 10, 10, 90])
    )
    parts = (component("a", [1.0, 1.0], ["1", "2"]), component("b", [1.0, 1.0], ["2", "1"]))
    seen = observation(components=parts, nodes=nodes("1", "2"), traffic=(traffic,))
    allocating = Allocating(AllocationRules("albic", time_limit_s=0.02))
    record = allocating.plan(seen, wanted=2, dry_run=False)
    assert record is not None
    assert record.collocation == pytest.approx(0.1)
    assert record.planned_collocation > 0.4


@pytest.mark.parametrize(
    ("remote_byte_s", "joined"), [(float("nan"), True), (1e-6, True), (0.0, False), (1e-12, False)]
)
def test_albic_joins_only_what_repays_its_move(remote_byte_s: float, joined: bool) -> None:
    """A megabyte a batch, and a tenth of a second for a move: a microsecond a byte repays that."""
    traffic = GroupTraffic("a", "b", np.arange(4), np.arange(4), np.full(4, 1e6), remote_byte_s)
    parts = (
        component("a", [1.0] * 4, ["1", "2", "1", "2"]),
        component("b", [1.0] * 4, ["2", "1", "2", "1"]),
    )
    seen = observation(components=parts, nodes=nodes("1", "2"), traffic=(traffic,))
    record = Allocating(AllocationRules("albic")).plan(seen, 2, dry_run=False)
    assert record is not None
    assert record.collocation == 0.0
    assert bool(record.moves) == joined


class Scene:
    """A loop over fakes that allocates."""

    def __init__(self, wanted: int, seen: list[Observation], total: int = 2, **more: Any) -> None:
        self.actuator, self.history = FakeActuator(total=total), FakeHistory()
        self.loop = loop_over(
            FakeMeasurer(seen), self.actuator, policy=FakePolicy(wanted), history=self.history,
            allocating=Allocating(MILP), **more,
        )  # fmt: skip

    def step(self) -> Step:
        return self.loop.step()


def test_moves_are_made_and_remembered() -> None:
    scene = Scene(2, [skewed()])
    step = scene.step()
    assert [action.NAME for action in scene.actuator.acted] == [MoveKeyGroups.NAME]
    assert scene.history.allocations == [step.allocation]
    assert [record.outcome for record in scene.history.actions] == [step.moved]
    assert step.changes
    assert "2 key groups move (milp)" in step.line()


def test_scaling_in_waits_until_the_node_is_empty() -> None:
    full = (component("sum", [1.0] * 24, ["1"] * 12 + ["2"] * 12),)
    seen = [observation(1000.0 + k, components=full, nodes=nodes("1", "2")) for k in range(2)]
    scene = Scene(1, seen)
    step = scene.step()
    assert step.outcome is None
    assert "have yet to leave" in (step.held_because or "")


def test_a_period_has_one_kind_of_disruptive_act() -> None:
    nearly, empty = (
        (component("sum", [1.0] * 24, ["1"] * (24 - left) + ["2"] * left),) for left in (2, 0)
    )
    seen = [
        observation(1000.0 + k, components=parts, nodes=nodes("1", "2"))
        for k, parts in enumerate((nearly, empty))
    ]
    scene = Scene(1, seen)
    assert "executors leave in the next" in (scene.step().held_because or "")
    assert [action.NAME for action in scene.actuator.acted] == ["key_groups"]
    scene.step()
    assert scene.actuator.acted[-1] == SetExecutors(1, leaving=("2",))

    skew = (component("sum", [2.2] * 4, ["1", "1", "1", "2"]),)
    scene = Scene(3, [observation(components=skew, nodes=nodes("1", "2"))])
    step = scene.step()
    assert scene.actuator.acted == [SetExecutors(3)], "what adds processors comes first"
    assert step.allocation is not None
    assert not step.allocation.moves


def test_nothing_is_drained_that_the_other_nodes_could_not_carry() -> None:
    parts = (component("sum", [1.5] * 4, ["1", "1", "2", "2"]),)
    busy = observation(components=parts, nodes=nodes("1", "2"))
    scene = Scene(1, [busy])
    step = scene.step()
    assert scene.actuator.acted == []
    assert step.allocation is not None
    assert (step.allocation.moves, step.allocation.leaving) == ((), ())
    assert "without 2 the other executors would be loaded 120 points of 100" in (
        step.held_because or ""
    )


def test_what_a_node_does_besides_key_groups_counts() -> None:
    # Node 1 is busy with something else all of the time: what it has of key groups must leave.
    parts = (component("sum", [0.5] * 4, ["1", "1", "2", "2"]),)
    there = (NodeObservation("1", 1, 4.9), NodeObservation("2", 1, 1.0))
    seen = observation(components=parts, nodes=there)
    record = Allocating(MILP).plan(seen, wanted=2, dry_run=False)
    assert record is not None
    assert {(move.key_group, move.node) for move in record.moves} == {(0, "2"), (1, "2")}
    # And it cannot be spared, as node 2 could not do all of it.
    spared = Allocating(MILP).plan(seen, wanted=1, dry_run=False)
    assert spared is not None
    assert spared.leaving == ()


def test_state_that_is_kept_in_memory_has_to_fit_into_it() -> None:
    # Balanced in work, but node 1 holds more state than it has memory for.
    sizes = np.array([9e6, 7e6, 1e6, 1e6])
    groups = KeyGroups(np.ones(4), sizes, np.array(["1", "1", "2", "2"]))
    part = ComponentObservation("sum", ("sum",), 100.0, 0.01, 4, 4.0, key_groups=groups)
    there = tuple(
        NodeObservation(name, 1, 1.0, state_memory_bytes=10e6) for name in ("1", "2")
    )  # fmt: skip
    record = Allocating(MILP).plan(observation(components=(part,), nodes=there), 2, False)
    assert record is not None
    assert len(record.moves) == 2
    assert record.planned_distance == 0
    assert record.infeasible is None


def test_other_work_that_is_uneven_by_chance_moves_nothing() -> None:
    parts = (component("sum", [0.5] * 4, ["1", "1", "2", "2"]),)
    allocating = Allocating(MILP)
    for busy_s in ((2.5, 1.5), (1.2, 2.2), (4.9, 1.2), (1.0, 4.9)):
        there = tuple(NodeObservation(name, 1, s) for name, s in zip("12", busy_s, strict=True))
        seen = observation(components=parts, nodes=there)
        record = allocating.plan(seen, wanted=2, dry_run=False)
        assert record is not None
        assert record.moves == (), busy_s


def test_busy_time_that_key_groups_explain_is_no_other_work() -> None:
    seen = key_group_table(skewed())
    assert seen.other_load.tolist() == [0.0, 0.0]  # 2 s of busy nodes, 4 s of key groups


@pytest.mark.parametrize("cannot", [{}, {SetExecutors.NAME: "the master is fixed"}])
def test_balance_does_not_wait_for_executors_that_cannot_come(cannot: dict[str, str]) -> None:
    late = LatencyObservation(100, 9.0, 9.0, 9.0, 0.1)
    uneven = (component("sum", [2.25] * 4, ["1", "1", "1", "2"]),)
    seen = observation(components=uneven, nodes=nodes("1", "2", slots=2), latency=late)
    scene = Scene(4, [seen], limits=Limits(1, 4, 5.0))
    scene.actuator.slots, scene.actuator.cannot = 2, cannot
    step = scene.step()
    assert step.allocation is not None
    assert step.allocation.load_distance == pytest.approx(45.0 / 2)
    assert [action.NAME for action in scene.actuator.acted] == [MoveKeyGroups.NAME]


def test_placement_is_tried_before_scaling_out() -> None:
    parts = (component("sum", [1.2] * 4, ["1"] * 4),)
    heavy = observation(components=parts, nodes=nodes("1", "2"))
    scene = Scene(3, [heavy])
    step = scene.step()
    assert [action.NAME for action in scene.actuator.acted] == [MoveKeyGroups.NAME]
    assert "no executor is added yet" in (step.held_because or "")
    even = (component("sum", [2.2] * 4, ["1", "1", "2", "2"]),)
    scene = Scene(3, [observation(components=even, nodes=nodes("1", "2"))])
    scene.step()
    assert scene.actuator.acted == [SetExecutors(3)]


def test_a_dry_run_moves_nothing() -> None:
    scene = Scene(2, [skewed()], dry_run=True)
    step = scene.step()
    assert scene.actuator.acted == []
    assert step.allocation is not None
    assert step.allocation.moves
    assert scene.history.allocations[0].dry_run


def test_components_that_are_no_more_are_forgotten() -> None:
    allocating = Allocating(MILP)
    for number in range(20):
        parts = (component(f"sum-{number}", [1.0, 1.0], ["1", "2"]),)
        allocating.plan(observation(components=parts, nodes=nodes("1", "2")), 2, False)
    assert list(allocating._load) == ["sum-19"]
