"""The controller: the loop in a thread that outlives its death, and what it came to."""

import threading
from collections.abc import Callable
from typing import Any

from contract.fakes import FakeActuator, FakeHistory, observation
from penstock.config import Settings
from penstock.control.controlled import Controlled
from penstock.control.controller import Controller
from penstock.model.decision import Limits
from penstock.model.observation import Observation


class Dying:
    """A measurer that ends its thread in the first period, as nothing that is caught could."""

    def __init__(self) -> None:
        self.periods = 0
        self.seen = threading.Event()

    def observe(self) -> Observation:
        self.periods += 1
        if self.periods == 1:
            raise SystemExit("killed")
        self.seen.set()
        return observation(1000.0 + self.periods)


def controller(measurer: Any, on_step: Callable[[Any], None] | None = None) -> Any:
    subject = Controlled(measurer=measurer, actuator=FakeActuator(), limits=Limits(1, 8, 5.0))
    history = FakeHistory()
    settings = Settings(period_s=0.01, policy="static", executors_max=4)
    return Controller(settings, subject, history, 5.0, on_step), history


def test_a_loop_that_dies_is_begun_again_and_the_history_hears_of_it() -> None:
    measurer = Dying()
    made, history = controller(measurer)
    made.start()
    assert measurer.seen.wait(120)
    made.stop()
    history.flush()
    assert [failure.stage for failure in history.failures] == ["loop"]
    assert "restarted: SystemExit: killed" in history.failures[0].message


def test_it_sums_up_what_it_saw_and_shows_every_step() -> None:
    measurer, shown = Dying(), list[Any]()
    made, _ = controller(measurer, shown.append)
    made.start()
    assert measurer.seen.wait(120)
    made.stop()
    made.stop()
    made.look_once_more()
    assert list(made.steps) == shown
    assert made.summary().duration_s == sum(o.period_s for o in made.observations) > 0
