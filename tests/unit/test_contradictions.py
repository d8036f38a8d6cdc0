"""Decisions that contradict each other: which rule wins, and that the history says so."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from contract.fakes import FakeActuator, FakeHistory, FakeMeasurer, FakePolicy
from contract.loops import loop_over
from penstock.cli import app
from penstock.config import Settings
from penstock.control.actions import MoveKeyGroups, SetExecutors
from penstock.control.allocating import Allocating, AllocationRules
from penstock.control.guards.standard import standard_guards
from penstock.control.history.store import HistoryStore
from penstock.control.records import RunRecord
from penstock.dashboard.view import Range, run_document
from penstock.model.decision import RoomDecision
from penstock.model.observation import (
    BatchObservation,
    ComponentObservation,
    KeyGroups,
    NodeObservation,
    Observation,
)


def seen(homes: str, load_s: float = 1.0, **changes: Any) -> Observation:
    """Two nodes; each letter is the home of a key group with this much work in a period of 5 s."""
    loads = np.full(len(homes), load_s)
    groups = KeyGroups(loads, np.zeros(len(homes)), np.array(list(homes)))
    values: dict[str, Any] = {
        "components": (
            ComponentObservation("sum", ("sum",), 100, 0.01, 2, 1.0, key_groups=groups),
        ),
        "nodes": (NodeObservation("1", 1, 1.0), NodeObservation("2", 1, 1.0)),
        "batches": BatchObservation(4, 1.0, 0.5, 100.0),
        "backlog_rows": 10.0,
    }
    return Observation(1000.0, 5.0, 100.0, **(values | changes))


def stepped(wanted: int, observation: Observation, **more: Any) -> tuple[list[Any], str]:
    """What was done in a period, and all that the history says of it."""
    actuator, history = FakeActuator(total=2), FakeHistory()
    loop = loop_over(
        FakeMeasurer([observation]), actuator, policy=FakePolicy(wanted), history=history,
        allocating=Allocating(AllocationRules("milp", time_limit_s=0.02)), **more,
    )  # fmt: skip
    loop.step()
    reasons = [r for d in history.decisions for r in (*d.decision.reasons, *d.guard_reasons)]
    reasons += [r for a in history.allocations for r in (*a.reasons, a.holds_scaling or "")]
    return [action.NAME for action in actuator.acted], "; ".join(reasons)


def test_a_move_that_removes_the_need_to_scale_wins() -> None:
    done, lines = stepped(3, seen("1111", 1.2))
    assert done == [MoveKeyGroups.NAME]
    assert "no executor is added yet, as a better placement is enough (heaviest node " in lines
    assert "no executor is added yet" in lines


def test_what_placement_cannot_solve_is_scaled_and_moves_wait() -> None:
    done, lines = stepped(3, seen("11111112", 1.2))
    assert done == [SetExecutors.NAME]
    assert "moves wait: executors are added first" in lines


def test_moves_do_not_wait_for_executors_that_the_cluster_does_not_give() -> None:
    actuator = FakeActuator(total=2, fail_with="the cluster gave 2 of 3 executors")
    history = FakeHistory()
    loop = loop_over(
        FakeMeasurer([seen("11111112", 1.2)] * 2), actuator, policy=FakePolicy(3, 3),
        history=history, allocating=Allocating(AllocationRules("milp", time_limit_s=0.02)),
    )  # fmt: skip
    loop.step()
    assert [action.NAME for action in actuator.acted] == [SetExecutors.NAME]
    loop.step()
    assert [action.NAME for action in actuator.acted[1:]] == [MoveKeyGroups.NAME, SetExecutors.NAME]


@pytest.mark.parametrize(
    ("observation", "said"),
    [
        (seen("12", backlog_rows=900.0), "no scaling in: too many rows wait (backlog 900;"),
        (seen("12", missing=("service times",)), "no scaling in: not measured: service times"),
        (seen("11"), None),
    ],
)
def test_nothing_scales_in_over_a_backlog_or_blindly(
    observation: Observation, said: str | None
) -> None:
    guards = standard_guards(Settings(cooldown_in_s=None), 1)
    done, lines = stepped(1, observation, guards=guards)
    assert (SetExecutors.NAME in done) == (said is None)
    if said is not None:
        assert said in lines


def test_nothing_scales_in_while_key_groups_are_on_their_way() -> None:
    done, lines = stepped(1, seen("1" * 12 + "2" * 12))
    assert done == [MoveKeyGroups.NAME]
    assert "key groups have yet to leave 2 before it is removed" in lines
    done, lines = stepped(1, seen("1" * 22 + "2" * 2))
    assert done == [MoveKeyGroups.NAME], "one kind of disruptive act in a period"
    assert "key groups moved in this period; executors leave in the next" in lines


@pytest.mark.parametrize("room", ["fusion", "order", "last resort", "interval", "routing"])
def test_what_other_rooms_decide_is_in_the_history_and_on_the_page(
    room: str, tmp_path: Path
) -> None:
    where = str(tmp_path / "h.sqlite")
    decision = RoomDecision(1005.0, room, "measured", "a, b > c", {"gain": 0.25}, ("cheaper",))
    with HistoryStore(where) as store:
        run = store.begin(RunRecord("road", "drs", 1000.0, 5.0, 5.0))
        run.observed(seen("12"))
        run.room_decided(decision)
        run.end(1010.0)
        shown = run_document(store, run.run_id, Range())["others"]
    assert [(one["kind"], one["what"], one["reasons"]) for one in shown] == [
        (room, "a, b > c", ["cheaper"])
    ]
    assert shown[0]["numbers"] == {"gain": [0.25]}
    printed = CliRunner().invoke(app, ["history", "--history", where, "--show", "elsewhere"]).stdout
    assert f"{room} (measured): a, b > c: cheaper (gain 25.0%)" in printed
