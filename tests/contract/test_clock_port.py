"""What every Clock promises."""

import threading
from collections.abc import Callable
from typing import Any

import pytest

from contract.fakes import FakeClock, wait_until
from contract.worlds import simulated_world
from penstock.control.clock import WallClock

CLOCKS: dict[str, Callable[[], Any]] = {
    "fake": FakeClock,
    "wall": WallClock,
    "simulated": simulated_world,
}


@pytest.fixture(params=CLOCKS)
def clock(request: pytest.FixtureRequest) -> Any:
    return CLOCKS[request.param]()


def test_time_passes_by_at_least_what_was_waited(clock: Any) -> None:
    before_s = clock.now_s()
    assert clock.wait_s(0.01) is True
    # Half: a machine's clock may be set back a little while we wait.
    assert clock.now_s() >= before_s + 0.005


def test_a_wait_of_nothing_or_less_returns(clock: Any) -> None:
    before_s = clock.now_s()
    assert clock.wait_s(0) is True
    assert clock.wait_s(-5) is True
    assert clock.now_s() >= before_s - 0.005


def test_a_stopped_clock_refuses_to_wait(clock: Any) -> None:
    # A simulated clock is stopped by the end of its scenario.
    getattr(clock, "stop", lambda: clock.wait_s(1e9))()
    assert clock.wait_s(3600) is False


def test_stop_ends_a_wait_under_way_in_another_thread() -> None:
    clock = WallClock()
    answers: list[bool] = []
    waiter = threading.Thread(target=lambda: answers.append(clock.wait_s(3600)))
    waiter.start()
    clock.stop()
    assert wait_until(lambda: not waiter.is_alive())
    assert answers == [False]
