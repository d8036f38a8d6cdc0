"""What waits to be taken, bounded for each query: nobody may come to take it.

A controller that died, or a half of a pair that never comes after a crash, must not make the driver
grow.
"""

from collections import deque
from typing import Generic, TypeVar

MOST_TAKEN = 2_000  # batches of one query: minutes of the shortest, hours of most
MOST_WAITING = 100  # batches of one query of which only one half is known

T = TypeVar("T")


class Untaken(Generic[T]):
    """Things of queries, oldest first; of very many, the newest."""

    def __init__(self) -> None:
        self._of: dict[str, deque[T]] = {}

    def add(self, query: str, thing: T) -> None:
        """One more of a query."""
        self._of.setdefault(query, deque(maxlen=MOST_TAKEN)).append(thing)

    def take(self) -> list[T]:
        """All of them, once."""
        things = [thing for of_query in self._of.values() for thing in of_query]
        self._of = {}
        return things


class Halves(Generic[T]):
    """One half of what is known of batches, until the other comes."""

    def __init__(self) -> None:
        self._of: dict[str, dict[int, T]] = {}

    def put(self, query: str, batch_id: int, half: T) -> None:
        """This half of a batch is known."""
        waiting = self._of.setdefault(query, {})
        waiting[batch_id] = half
        while len(waiting) > MOST_WAITING:
            del waiting[next(iter(waiting))]

    def has(self, query: str, batch_id: int) -> bool:
        """Whether this half of a batch is known."""
        return batch_id in self._of.get(query, {})

    def pop(self, query: str, batch_id: int) -> T:
        """Take this half of a batch."""
        return self._of[query].pop(batch_id)

    def __len__(self) -> int:
        return sum(map(len, self._of.values()))
