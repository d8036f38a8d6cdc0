"""Real time, and the way to end a loop that waits in it.

The controller's time begins as the machine's and then runs by the clock that is never set:
cooldowns, windows and periods are differences of it, and records of one run are in order.
"""

import threading
import time

_BEGAN_S = time.time() - time.monotonic()


def steady_s() -> float:
    """Seconds since the epoch by the machine's clock when this process began; never set back."""
    return _BEGAN_S + time.monotonic()


class WallClock:
    """The Clock port in real time; `stop` ends a wait at once, from any thread."""

    def __init__(self) -> None:
        self._stopped = threading.Event()

    def now_s(self) -> float:
        return steady_s()

    def wait_s(self, seconds: float) -> bool:
        return not self._stopped.wait(max(0.0, seconds))

    def stop(self) -> None:
        """End the present wait and refuse all later ones."""
        self._stopped.set()
