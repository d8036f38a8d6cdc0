"""Since when each query's batch runs, so that one that never ends is noticed."""

import threading
import time
from collections.abc import Callable


class BatchWatch:
    """The batches of one topology; a query's thread says when one begins and ends."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._since_s: dict[str, tuple[int, float]] = {}

    def began(self, query: str, batch: int) -> None:
        """A batch begins, for the first time or again."""
        with self._lock:
            self._since_s[query] = batch, self._clock()

    def ended(self, query: str, _batch: int) -> None:
        """A batch was written."""
        with self._lock:
            self._since_s.pop(query, None)

    def overdue(self, limit_s: float) -> str | None:
        """A sentence about a batch that runs for longer than it may."""
        with self._lock:
            for query, (batch, since_s) in sorted(self._since_s.items()):
                if self._clock() - since_s > limit_s:
                    return (
                        f"batch {batch} of query {query!r} has not ended within {limit_s:g} s; a "
                        "function of it may never return, and others wait for its processors."
                    )
        return None
