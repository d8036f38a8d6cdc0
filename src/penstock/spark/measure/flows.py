"""Rows and work over the last seconds, since both come in bulks.

A batch publishes all its rows at its end. In a period shorter than a batch a component gets nothing
or everything; so rates are measured over a horizon that holds a few batches.
"""

from collections import deque
from dataclasses import dataclass

HORIZON_S = 15.0


@dataclass(frozen=True)
class _Period:
    at_s: float
    period_s: float
    rows: int
    busy_s: float


class Flow:
    """What came to one component, and how long its processors were busy."""

    def __init__(self) -> None:
        self._periods: deque[_Period] = deque()

    def add(self, at_s: float, period_s: float, rows: int, busy_s: float = 0.0) -> None:
        """A period ended."""
        self._periods.append(_Period(at_s, period_s, rows, busy_s))
        while len(self._periods) > 1 and self._periods[1].at_s <= at_s - HORIZON_S:
            self._periods.popleft()

    @property
    def rows_per_s(self) -> float:
        """Rows a second that came."""
        return sum(period.rows for period in self._periods) / self._span_s

    @property
    def busy_share(self) -> float:
        """Processors that were busy on average."""
        return sum(period.busy_s for period in self._periods) / self._span_s

    @property
    def _span_s(self) -> float:
        return sum(period.period_s for period in self._periods)
