"""The loop in a thread of its own, restarted in a new one if that dies.

What fails inside a period is caught by the loop itself; this is for what nobody foresaw. A new
thread, because one that was ended in the middle of a call may have left half an answer behind.
"""

import logging
import threading
from collections.abc import Callable

from penstock.control.ports import Clock

log = logging.getLogger(__name__)

THREAD = "penstock-loop"
AGAIN_AFTER_S = 1.0


class LoopThread:
    """Runs until the function ends by itself or the clock is stopped."""

    def __init__(
        self, run: Callable[[], None], clock: Clock, died: Callable[[str], None] | None = None
    ) -> None:
        """`died` is called with the reason each time the loop is about to be restarted."""
        self._run = run
        self._clock = clock
        self._died = died
        self._why: str | None = None
        self._keeper = threading.Thread(target=self._keep, name="penstock-keeper", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._keeper.start()

    def join(self, timeout_s: float) -> None:
        """Wait for the end; the clock must be stopped for it to come."""
        self._keeper.join(timeout=timeout_s)

    def _keep(self) -> None:
        while True:
            thread = threading.Thread(target=self._once, name=THREAD, daemon=True)
            thread.start()
            thread.join()
            why = self._why
            if why is None:
                return
            log.warning("the control loop died and is being restarted: %s", why)
            if self._died is not None:
                try:
                    self._died(why)
                except Exception as error:  # noqa: BLE001 - a failing report must not stop it for good
                    log.warning(
                        "the control loop's failure could not be recorded in the history: %s", error
                    )
            if not self._clock.wait_s(AGAIN_AFTER_S):
                return

    def _once(self) -> None:
        self._why = "it ended without a word"
        try:
            self._run()
            self._why = None
        except BaseException as error:  # noqa: BLE001 - whatever it was, the query goes on
            self._why = f"{type(error).__name__}: {error}".strip(": ")
