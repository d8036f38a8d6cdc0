"""The loop: what it does in a period, and that nothing that fails in it reaches the query."""

import logging
from datetime import UTC
from typing import Any

import pytest

from contract.fakes import (
    FakeActuator,
    FakeClock,
    FakeHistory,
    FakeMeasurer,
    FakePolicy,
    observation,
)
from contract.loops import loop_over
from penstock.control.acting import executors_for
from penstock.control.actions import SetExecutors
from penstock.control.guards.limits import Bounds, Cooldown
from penstock.control.step import Step
from penstock.model.decision import Limits
from penstock.model.observation import ComponentObservation, Observation

LIMITS = Limits(min_processors=1, max_processors=8, max_latency_s=5.0)


class Scene:
    """A loop over fakes."""

    def __init__(
        self, policy: FakePolicy, measured: list[Any], actuator: FakeActuator | None = None,
        guards: tuple[Any, ...] = (Bounds(),), limits: Limits = LIMITS, **more: Any,
    ) -> None:  # fmt: skip
        self.clock, self.history, self.policy = FakeClock(), FakeHistory(), policy
        self.actuator = actuator or FakeActuator()
        self.measurer = FakeMeasurer(measured)
        self.loop = loop_over(
            self.measurer, self.actuator, policy=policy, limits=limits, guards=guards,
            clock=self.clock, history=self.history, **more,
        )  # fmt: skip


def several(count: int) -> list[Observation]:
    return [observation(1000.0 + 5 * k) for k in range(count)]


def test_a_wanted_change_is_carried_out_and_remembered() -> None:
    scene = Scene(FakePolicy(3), several(1))
    step = scene.loop.step()
    assert scene.actuator.acted == [SetExecutors(3)]
    assert (step.executors_before, step.executors_wanted) == (1, 3)
    assert step.outcome is not None
    assert step.outcome.done
    assert scene.history.observations == [step.observation]
    assert scene.history.decisions == [step.decision]
    assert [record.outcome for record in scene.history.actions] == [step.outcome]
    assert scene.history.failures == []


def test_only_differences_are_acted_on() -> None:
    scene = Scene(FakePolicy(2), several(3))
    for _ in range(3):
        scene.loop.step()
    assert scene.actuator.acted == [SetExecutors(2)]
    assert len(scene.history.decisions) == 3


def test_dry_run_decides_and_remembers_but_never_acts() -> None:
    scene = Scene(FakePolicy(3), several(2), dry_run=True)
    first, second = scene.loop.step(), scene.loop.step()
    assert scene.actuator.acted == []
    assert [record.dry_run for record in scene.history.decisions] == [True, True]
    assert first.changes
    assert second.changes
    assert "dry run" in first.line()


def test_an_unavailable_actuator_makes_it_advice_with_the_reason() -> None:
    actuator = FakeActuator(cannot={SetExecutors.NAME: "local mode has one executor"})
    scene = Scene(FakePolicy(3), several(1), actuator)
    line = scene.loop.step().line()
    assert actuator.acted == []
    assert line.endswith("advice only: local mode has one executor")


@pytest.mark.parametrize(
    ("processors", "slots", "most", "executors"),
    [(1, 2, 8, 1), (2, 2, 8, 1), (3, 2, 8, 2), (8, 3, 8, 2), (0, 2, 8, 1), (4, 8, 4, 1)],
)
def test_processors_become_whole_executors_within_the_limit(
    processors: int, slots: int, most: int, executors: int
) -> None:
    assert executors_for(processors, slots, Limits(1, most, 5.0)) == executors


def test_a_part_of_an_executor_is_no_reason_to_act_or_to_argue() -> None:
    scene = Scene(
        FakePolicy(3), several(1), FakeActuator(total=2, slots=2), guards=(Cooldown(1e9, 1e9),)
    )
    step = scene.loop.step()
    assert not step.changes
    assert step.decision is not None
    assert step.decision.guard_reasons == ()


def test_the_policy_sees_a_bounded_window_and_what_runs() -> None:
    part = ComponentObservation("a", ("a",), 10.0, 0.1, 3, 1.0)
    measured = [observation(1000.0 + k, components=(part,)) for k in range(5)]
    scene = Scene(FakePolicy(2), measured, FakeActuator(total=2, slots=2), window=3)
    for _ in range(5):
        scene.loop.step()
    seen = scene.policy.contexts[-1]
    assert [o.at_s for o in seen.window] == [1002.0, 1003.0, 1004.0]
    assert scene.policy.contexts[0].current.processors == 4
    assert seen.current.parallelism == {"a": 3}


def test_without_an_observation_nothing_is_decided() -> None:
    scene = Scene(FakePolicy(3), [observation(), None], FakeActuator())
    scene.loop.step()
    step = scene.loop.step()
    assert step.decision is None
    assert len(scene.policy.contexts) == 1
    assert "nothing was observed" in step.line()


def test_cooldown_counts_from_acts_that_were_done() -> None:
    scene = Scene(FakePolicy(2, 3, 3), several(3), guards=(Cooldown(out_s=8, in_s=8),))
    scene.loop.run(steps=3)
    assert scene.actuator.acted == [SetExecutors(2), SetExecutors(3)]
    reason = scene.history.decisions[1].guard_reasons[0]
    assert reason.startswith("cooldown, too soon after the last change (5 s ago;")
    failing = Scene(
        FakePolicy(2), several(2), FakeActuator(fail_with="no room"), guards=(Cooldown(99, 99),)
    )
    failing.loop.run(steps=2)
    assert len(failing.actuator.acted) == 2


def test_a_measurer_that_fails_is_noted_and_the_loop_goes_on() -> None:
    scene = Scene(FakePolicy(2), [RuntimeError("no\nmetrics"), observation()])
    step = scene.loop.step()
    assert step.failures[0].stage == "measurer"
    assert step.failures[0].message == "RuntimeError: no metrics"
    assert scene.history.failures == list(step.failures)
    assert scene.loop.step().outcome is not None


def test_a_policy_that_fails_leaves_the_cluster_alone() -> None:
    scene = Scene(FakePolicy(ZeroDivisionError("x"), 2), several(2))
    step = scene.loop.step()
    assert scene.actuator.acted == []
    assert step.decision is None
    assert [failure.stage for failure in scene.history.failures] == ["policy"]
    assert scene.loop.step().outcome is not None


def test_an_actuator_that_raises_is_an_act_that_was_not_done() -> None:
    scene = Scene(FakePolicy(2), several(2), FakeActuator(fail_with=OSError("gone")))
    step = scene.loop.step()
    assert step.outcome is not None
    assert not step.outcome.done
    assert scene.history.actions[0].outcome.detail == "OSError: gone"
    scene.actuator.fail_with = None
    assert scene.loop.step().outcome.done  # type: ignore[union-attr]


def test_a_history_that_fails_does_not_keep_it_from_acting(
    caplog: pytest.LogCaptureFixture,
) -> None:
    scene = Scene(FakePolicy(2), several(1))
    scene.history.fail_with = OSError("disk full")
    with caplog.at_level(logging.WARNING):
        step = scene.loop.step()
    assert scene.actuator.acted == [SetExecutors(2)]
    assert {failure.stage for failure in step.failures} == {"history"}
    assert all("\n" not in record.getMessage() for record in caplog.records)
    assert "history failed, going on: OSError: disk full" in caplog.text


def test_a_view_that_fails_does_not_end_the_run() -> None:
    seen: list[Step] = []

    def view(step: Step) -> None:
        seen.append(step)
        raise ValueError("terminal gone")

    scene = Scene(FakePolicy(2), several(2), on_step=view)
    scene.loop.run(steps=2)
    assert len(seen) == 2


def test_run_ends_when_the_clock_is_stopped() -> None:
    scene = Scene(FakePolicy(1), several(9))
    scene.clock.stop_after_waits = 4
    scene.loop.run()
    assert len(scene.history.decisions) == 4


def test_periods_do_not_drift_and_overrun_ones_are_skipped() -> None:
    scene = Scene(FakePolicy(1), several(9))
    slow = {1: 2.0, 2: 12.0}  # what the second and third step take
    times: list[float] = []
    observe = scene.measurer.observe

    def slowly() -> Observation | None:
        times.append(scene.clock.now_s())
        scene.clock.time_s += slow.get(len(times) - 1, 0.0)
        return observe()

    scene.measurer.observe = slowly  # type: ignore[method-assign]
    scene.loop.run(steps=5)
    assert times == [1005.0, 1010.0, 1015.0, 1030.0, 1035.0]


def test_a_clock_set_back_does_not_stop_the_loop() -> None:
    def set_back(step: Step) -> None:
        if step.executors_wanted == 2:
            scene.clock.time_s -= 3600.0

    scene = Scene(FakePolicy(2, 3), several(9), on_step=set_back, guards=(Cooldown(8, 8),))
    scene.loop.run(steps=3)
    assert max(scene.clock.waits_s) <= 5.0
    assert scene.actuator.acted == [SetExecutors(2), SetExecutors(3)]


def test_a_cooldown_begins_when_a_long_act_ends() -> None:
    scene = Scene(FakePolicy(2, 3), several(3), guards=(Cooldown(out_s=8, in_s=8),))
    act = scene.actuator.act

    def slowly(action: SetExecutors) -> Any:
        scene.clock.time_s += 20.0
        return act(action)

    scene.actuator.act = slowly  # type: ignore[method-assign]
    scene.loop.run(steps=3)
    assert [record.guard_reasons != () for record in scene.history.decisions] == [
        False, True, False,
    ]  # fmt: skip


def test_a_cooldown_of_two_periods_is_not_one_of_three_because_an_act_took_a_moment() -> None:
    scene = Scene(FakePolicy(2, 3, 3), several(3), guards=(Cooldown(out_s=10, in_s=10),))
    act = scene.actuator.act

    def in_a_moment(action: SetExecutors) -> Any:
        scene.clock.time_s += 0.4
        return act(action)

    scene.actuator.act = in_a_moment  # type: ignore[method-assign]
    scene.loop.run(steps=3)
    assert scene.actuator.acted == [SetExecutors(2), SetExecutors(3)]


def test_one_line_for_a_person() -> None:
    scene = Scene(FakePolicy(9), several(1))
    assert scene.loop.step().line(UTC) == (
        "00:16:40 executors 1 -> 8 (fake): wants 9; no more than 8 processors are allowed "
        "(9 wanted)"
    )


def test_a_last_look_remembers_and_decides_nothing() -> None:
    scene = Scene(FakePolicy(3), several(1))
    step = scene.loop.look()
    assert scene.actuator.acted == []
    assert step.decision is None
    assert scene.history.observations == [step.observation]
    assert scene.history.decisions == []
