"""Loops that share executors in time: there are as many as the one that wants most."""

from collections.abc import Mapping

import pytest

import penstock
from penstock.control.actions import Action, Outcome, SetExecutors, SetInterval
from penstock.control.most_wanted import MostWanted, OneOfSeveral
from penstock.control.step import Step
from penstock.errors import InvalidInput


class Executors:
    def __init__(self) -> None:
        self.count, self.acts = 2, list[Action]()

    def unavailable(self) -> Mapping[str, str]:
        return {}

    def executors(self) -> int:
        return self.count

    def slots_per_executor(self) -> int:
        return 1

    def act(self, action: Action) -> Outcome:
        self.acts.append(action)
        if isinstance(action, SetExecutors):
            self.count = action.total
        return Outcome(action, True, "done")


def two() -> tuple[Executors, MostWanted, OneOfSeveral, OneOfSeveral]:
    executors = Executors()
    shared = MostWanted(executors)
    orders, audit = (OneOfSeveral(name, shared, Executors()) for name in ("orders", "audit"))
    return executors, shared, orders, audit


def test_the_one_that_wants_most_gets_it_and_the_other_waits() -> None:
    executors, _, orders, audit = two()
    assert orders.act(SetExecutors(4)).done
    assert executors.count == audit.executors() == 4
    held = audit.act(SetExecutors(1))
    assert (held.done, held.detail) == (False, "query 'orders' needs 4 executors")
    assert executors.count == 4
    assert orders.act(SetExecutors(3)).done  # audit wants 1, so 3 will do
    assert executors.count == 3


def test_what_a_loop_wants_without_acting_counts() -> None:
    executors, shared, orders, audit = two()
    shared.asked("audit", Step(0.0, executors_before=2, executors_wanted=2))
    assert not orders.act(SetExecutors(1)).done
    assert executors.count == 2
    shared.asked("audit", Step(1.0))  # a period without a decision says nothing
    shared.asked("audit", Step(2.0, executors_before=2, executors_wanted=1))
    assert orders.act(SetExecutors(1)).done
    assert executors.count == 1
    assert audit.slots_per_executor() == 1


def test_one_that_leaves_holds_nothing() -> None:
    executors, shared, orders, audit = two()
    assert audit.act(SetExecutors(4)).done
    shared.leave("audit")
    assert orders.act(SetExecutors(1)).done
    assert executors.count == 1


def test_other_acts_are_its_own() -> None:
    executors, _, orders, _ = two()
    assert orders.act(SetInterval(2.0)).done
    assert executors.acts == []


@pytest.mark.parametrize(
    ("bounds", "sentence"),
    [
        ({}, "attach(max_latency) is empty; give a bound, or one for each query."),
        ({"orders": "soon"}, "attach(max_latency['orders']) is 'soon'"),
        ({"orders": "2s"}, "attach(max_latency) is a bound for each query, but attach(target) is"),
    ],
)
def test_bounds_that_are_wrong(bounds: dict[str, str], sentence: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        penstock.attach(object(), bounds)
    assert str(refused.value).startswith(sentence)
