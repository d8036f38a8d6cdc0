"""How long a search may go on, without a clock of its own."""

import math
from collections.abc import Callable

WORK_PER_S = 1.5e7  # candidates looked at in a second on a slow core; measured, see docs


class SearchBudget:
    """Counts work; a caller that owns a clock may add a deadline.

    Work alone makes a search repeatable: the same seed and the same work give the same answer on
    any machine. With a clock the search ends at whichever comes first.
    """

    def __init__(
        self, work: float, clock: Callable[[], float] | None = None, time_limit_s: float = math.inf
    ) -> None:
        self._left = work
        self._whole: SearchBudget | None = None
        self._clock = clock
        self._deadline_s = clock() + time_limit_s if clock else math.inf

    @classmethod
    def of_time(cls, time_limit_s: float) -> "SearchBudget":
        """The work that fits into a time limit on a slow core."""
        return cls(time_limit_s * WORK_PER_S)

    def spend(self, work: float) -> None:
        """Account for work done."""
        self._left -= work
        if self._whole is not None:
            self._whole.spend(work)

    def part(self, share: float) -> "SearchBudget":
        """A share of the work and of the time that is left, spent from this budget too."""
        part = SearchBudget(self.left * share)
        part._whole = self
        if self._clock is not None:
            now_s = self._clock()
            part._clock = self._clock
            part._deadline_s = now_s + share * max(self._deadline_s - now_s, 0.0)
        return part

    @property
    def over(self) -> bool:
        """Whether the search must end."""
        if self._left <= 0 or (self._whole is not None and self._whole.over):
            return True
        return self._clock is not None and self._clock() >= self._deadline_s

    @property
    def time_left_s(self) -> float:
        """Seconds to the deadline; infinite without a clock."""
        return math.inf if self._clock is None else max(self._deadline_s - self._clock(), 0.0)

    @property
    def left(self) -> float:
        """Work that is left."""
        return max(self._left, 0.0)
