"""A loop that dies is restarted; one that ends is not."""

import threading

from penstock.control.clock import WallClock
from penstock.control.controller import LoopThread


class ImpatientClock(WallClock):
    """Waits for nothing."""

    def wait_s(self, seconds: float) -> bool:
        return super().wait_s(0.0)


def test_it_is_begun_again_in_another_thread_until_it_ends_by_itself() -> None:
    threads: list[int] = []
    failures: list[str] = []

    def run() -> None:
        threads.append(threading.get_ident())
        if len(failures) < 2:
            raise SystemExit("killed") if failures else ValueError("no luck")

    kept = LoopThread(run, ImpatientClock(), failures.append)
    kept.start()
    kept.join(10)
    assert failures == ["ValueError: no luck", "SystemExit: killed"]
    assert len(threads) == 3


def test_a_history_that_fails_does_not_keep_it_from_beginning_again() -> None:
    runs: list[int] = []

    def run() -> None:
        runs.append(1)
        if len(runs) == 1:
            raise KeyboardInterrupt

    def died(_why: str) -> None:
        raise OSError("no disk")

    kept = LoopThread(run, ImpatientClock(), died)
    kept.start()
    kept.join(10)
    assert len(runs) == 2


def test_it_is_not_begun_again_once_the_clock_is_stopped() -> None:
    clock, runs = ImpatientClock(), []

    def run() -> None:
        runs.append(1)
        clock.stop()
        raise ValueError

    kept = LoopThread(run, clock)
    kept.start()
    kept.join(10)
    assert runs == [1]
