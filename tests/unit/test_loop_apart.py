"""Components with processors of their own: what the loop hands out, and in which order."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from contract.fakes import FakeActuator, FakeHistory, FakeMeasurer, observation
from contract.loops import loop_over
from penstock.control.actions import SetExecutors, SetParallelism
from penstock.control.guards.limits import Bounds, LargestStep
from penstock.control.loop import Loop
from penstock.model.decision import Decision, Limits, ScalingPlan
from penstock.model.observation import ComponentObservation, Observation
from penstock.scaling.policies.policy import ScalingContext


@dataclass
class Wants:
    """A policy that wants these processors."""

    wanted: Mapping[str, int]
    seen: ScalingPlan | None = None
    name: str = "wants"
    looks_ahead: bool = False

    def decide(self, context: ScalingContext) -> Decision[ScalingPlan]:
        self.seen = context.current
        return Decision(ScalingPlan(self.wanted, sum(self.wanted.values())))


def seen(at_s: float, **parallelism: int) -> Observation:
    components = tuple(
        ComponentObservation(name, (name,), 1.0, 0.1, count, 0.1)
        for name, count in parallelism.items()
    )
    return replace(observation(at_s), components=components)


def loop(
    policy: Wants, actuator: FakeActuator, periods: int, most: int = 8, **more: object
) -> tuple[Loop, FakeHistory]:
    history = FakeHistory()
    measurer = FakeMeasurer([seen(1000.0 + 5 * n, a=1, b=1) for n in range(periods)])
    made = loop_over(
        measurer, actuator, policy=policy, history=history, limits=Limits(1, most, 5.0),
        guards=(Bounds(),), sharing="space", parallelism={"a": 1, "b": 1}, **more,
    )  # fmt: skip
    return made, history


def test_a_new_division_is_carried_out_once_and_remembered() -> None:
    actuator = FakeActuator(total=1, slots=8)
    policy = Wants({"a": 2, "b": 3})
    made, history = loop(policy, actuator, 2)
    step = made.step()
    assert policy.seen == ScalingPlan({"a": 1, "b": 1}, 2), "slots that nobody has do not run"
    assert actuator.acted == [SetParallelism({"a": 2, "b": 3})]
    assert step.carried_out
    assert "executors stay 1, processors -> a 2, b 3" in step.line()
    made.step()
    assert len(actuator.acted) == 1
    assert [record.outcome.action for record in history.actions] == actuator.acted


def test_executors_come_before_what_they_hold_and_leave_after_it() -> None:
    actuator = FakeActuator(total=1, slots=2)
    policy = Wants({"a": 2, "b": 4})
    made, _ = loop(policy, actuator, 2)
    made.step()
    assert actuator.acted == [SetExecutors(3), SetParallelism({"a": 2, "b": 4})]
    policy.wanted = {"a": 1, "b": 1}
    actuator.acted.clear()
    made.step()
    assert actuator.acted == [SetParallelism({"a": 1, "b": 1}), SetExecutors(1)]


def test_executors_that_do_not_come_hand_nothing_out() -> None:
    actuator = FakeActuator(total=1, slots=2, cannot={SetExecutors.NAME: "local mode"})
    made, _ = loop(Wants({"a": 2, "b": 4}), actuator, 1)
    step = made.step()
    assert actuator.acted == []
    assert step.held_because == "advice only: local mode"


def test_a_dry_run_hands_nothing_out() -> None:
    actuator = FakeActuator(total=1, slots=8)
    made, _ = loop(Wants({"a": 2, "b": 3}), actuator, 1, dry_run=True)
    made.step()
    assert actuator.acted == []


def test_a_policy_splits_the_total_that_guards_leave_it() -> None:
    """Nine and five are wanted and ten allowed: which ten is the policy's to say."""

    class Splits(Wants):
        def decide(self, context: ScalingContext) -> Decision[ScalingPlan]:
            most = context.limits.max_processors
            split = {"a": 9, "b": 5} if most >= 14 else {"a": most - 2, "b": 2}
            return Decision(ScalingPlan(split, sum(split.values())))

    actuator = FakeActuator(total=1, slots=16)
    policy = Splits({})
    history = FakeHistory()
    made = loop_over(
        FakeMeasurer([seen(1000.0, a=1, b=1)]), actuator, policy=policy, history=history,
        limits=Limits(1, 16, 5.0), guards=(LargestStep(8, 8),), sharing="space",
        parallelism={"a": 1, "b": 1},
    )  # fmt: skip
    made.step()
    assert actuator.acted == [SetParallelism({"a": 8, "b": 2})]
