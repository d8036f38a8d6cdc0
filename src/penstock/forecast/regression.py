"""Least squares of one variable, kept by its sums, so that points can be added and taken away.

y = intercept + slope x, from n, sum x, sum y, sum xx, sum xy, sum yy of the points, each relative
to the first point's x to keep differences of large times exact (Kotto-Kombi 2018, ch. 5 s. 3.1).
"""

import math
from dataclasses import dataclass, replace


@dataclass(frozen=True)
class LinearRegression:
    """Sums of the points seen; `add` and `remove` give a new one in constant time.

    >>> line = LinearRegression().add(0.0, 1.0).add(1.0, 3.0).add(2.0, 5.0)
    >>> line.at(3.0), line.remove(0.0, 1.0).slope
    (7.0, 2.0)
    """

    origin: float = 0.0
    count: int = 0
    x: float = 0.0
    y: float = 0.0
    xx: float = 0.0
    xy: float = 0.0
    yy: float = 0.0

    def add(self, x: float, y: float) -> "LinearRegression":
        """With one more point."""
        start = replace(self, origin=x) if self.count == 0 else self
        return start._changed(x, y, 1)

    def remove(self, x: float, y: float) -> "LinearRegression":
        """Without a point that was added before."""
        return self._changed(x, y, -1) if self.count > 1 else LinearRegression()

    def _changed(self, x: float, y: float, sign: int) -> "LinearRegression":
        shifted = x - self.origin
        return LinearRegression(
            self.origin,
            self.count + sign,
            self.x + sign * shifted,
            self.y + sign * y,
            self.xx + sign * shifted * shifted,
            self.xy + sign * shifted * y,
            self.yy + sign * y * y,
        )

    @property
    def spread(self) -> float:
        """Sum of squared distances of x from its mean."""
        if self.count < 2:
            return 0.0
        return max(0.0, self.xx - self.x * self.x / self.count)

    @property
    def slope(self) -> float:
        """Rise of y for each unit of x; zero when all points have one x."""
        if self.spread <= 1e-12 * max(1.0, self.xx):
            return 0.0
        return (self.xy - self.x * self.y / self.count) / self.spread

    @property
    def mean(self) -> float:
        """Mean of y; NaN without points."""
        return self.y / self.count if self.count else math.nan

    def at(self, x: float) -> float:
        """The line's value at x; NaN without points."""
        if not self.count:
            return math.nan
        return self.mean + self.slope * (x - self.origin - self.x / self.count)

    @property
    def error(self) -> float:
        """Root mean square distance of the points from the line; NaN without points."""
        if not self.count:
            return math.nan
        total = self.yy - self.y * self.y / self.count
        explained = self.slope * self.slope * self.spread
        return math.sqrt(max(0.0, total - explained) / self.count)
