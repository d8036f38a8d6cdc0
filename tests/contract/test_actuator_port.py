"""What every Actuator promises."""

from collections.abc import Callable
from typing import Any

import pytest

from contract.fakes import FakeActuator
from contract.worlds import simulated_world
from penstock.control.actions import Move, MoveKeyGroups, Outcome, SetExecutors

ACTUATORS: dict[str, Callable[[], Any]] = {
    "fake": FakeActuator,
    "fake, two slots": lambda: FakeActuator(total=2, slots=2),
    "fake, unavailable": lambda: FakeActuator(cannot={SetExecutors.NAME: "no such handle"}),
    "fake, failing": lambda: FakeActuator(fail_with="no room"),
    "simulated, together": lambda: simulated_world("time"),
    "simulated, with key groups": lambda: simulated_world("time", key_groups=6),
    "simulated, apart": lambda: simulated_world("space"),
}


@pytest.fixture(params=ACTUATORS)
def actuator(request: pytest.FixtureRequest) -> Any:
    return ACTUATORS[request.param]()


def test_there_are_executors_with_slots(actuator: Any) -> None:
    assert actuator.executors() >= 0
    assert actuator.slots_per_executor() >= 1


def test_what_is_unavailable_has_a_reason(actuator: Any) -> None:
    assert all(name and reason for name, reason in actuator.unavailable().items())


@pytest.mark.parametrize("total", [1, 2, 3])
def test_an_act_is_answered_and_what_is_done_shows(actuator: Any, total: int) -> None:
    before = actuator.executors()
    outcome = actuator.act(SetExecutors(total))
    assert isinstance(outcome, Outcome)
    assert outcome.action == SetExecutors(total)
    assert outcome.detail
    assert outcome.took_s >= 0
    assert actuator.executors() == (total if outcome.done else before)


def test_what_is_unavailable_is_refused_not_raised(actuator: Any) -> None:
    if SetExecutors.NAME in actuator.unavailable():
        assert not actuator.act(SetExecutors(3)).done


def test_moves_are_answered_and_refused_with_a_reason(actuator: Any) -> None:
    for move in (Move("a", 0, "node-1"), Move("a", 0, "nowhere"), Move("nothing", 99, "node-0")):
        outcome = actuator.act(MoveKeyGroups((move,)))
        assert isinstance(outcome, Outcome)
        assert outcome.action == MoveKeyGroups((move,))
        assert outcome.detail
        if MoveKeyGroups.NAME in actuator.unavailable():
            assert not outcome.done


def test_asking_twice_for_the_same_changes_nothing_more(actuator: Any) -> None:
    actuator.act(SetExecutors(2))
    after_one = actuator.executors()
    actuator.act(SetExecutors(2))
    assert actuator.executors() == after_one
