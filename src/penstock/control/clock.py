"""Real time, and the way to end a loop that waits in it."""

import threading
import time


class WallClock:
    """The Clock port over the machine's clock; `stop` ends a wait at once, from any thread."""

    def __init__(self) -> None:
        self._stopped = threading.Event()

    def now_s(self) -> float:
        """Seconds since the epoch."""
        return time.time()

    def wait_s(self, seconds: float) -> bool:
        """Wait; False when stopped before or meanwhile."""
        return not self._stopped.wait(max(0.0, seconds))

    def stop(self) -> None:
        """End the present wait and refuse all later ones."""
        self._stopped.set()
