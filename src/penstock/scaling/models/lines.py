"""A line through many points at once: the sums of a `LinearRegression` in one pass."""

from collections.abc import Sequence

from penstock.forecast.regression import LinearRegression


def line_through(points: Sequence[tuple[float, float]]) -> LinearRegression:
    """As if the points were added one by one.

    >>> line_through([(0.0, 1.0), (1.0, 3.0), (2.0, 5.0)]).at(3.0)
    7.0
    """
    if not points:
        return LinearRegression()
    origin = points[0][0]
    x = y = xx = xy = yy = 0.0
    for at, value in points:
        shifted = at - origin
        x += shifted
        y += value
        xx += shifted * shifted
        xy += shifted * value
        yy += value * value
    return LinearRegression(origin, len(points), x, y, xx, xy, yy)
