"""How long an executor waits for a system that is away before its task fails."""

import time

LIMIT_S = 120.0
FIRST_S, MOST_S = 0.1, 5.0


class Patience:
    """Waits that double, until the limit is reached."""

    def __init__(self, limit_s: float = LIMIT_S) -> None:
        self._until_s = time.monotonic() + limit_s
        self._wait_s = FIRST_S

    def next_s(self, reason: Exception) -> float:
        """How long to wait before the next try; raises the reason when there is to be none."""
        if time.monotonic() >= self._until_s:
            raise reason
        wait_s = self._wait_s
        self._wait_s = min(2 * wait_s, MOST_S)
        return wait_s
