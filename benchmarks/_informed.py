"""Executors asked for by one who knows so much of the load, with the best margin there is.

At the beginning of each period one asks for what a rate needs, plus a margin, and keeps what it
asked for some periods longer:

    n(t) = max over the periods since t - hold of need(x + margin * s(x)),  x the rate ahead at t

need(r) is the fewest executors whose slowest row keeps the bound at a steady rate of r: the batches
of a load a are O / (1 - a) long, and that row takes two of them. The rate ahead is the highest of
the periods until what is asked for now has begun to serve. s(x) is m, the mean rate, or sqrt(m x),
or x: a margin in rows a second, one as counts scatter, or a relative one. Margin, s and hold are
constants, chosen in hindsight from a grid: the cheapest that keep the share. Or the quantile by
which `promise` plans takes the place of x + margin * s(x), at a level that is chosen likewise. What
serves is the least that was asked for since it would have had to be.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from penstock.forecast.load_ahead import load_ahead
from penstock.forecast.paths import USUAL_FORECASTERS, PathForecaster
from penstock.sim.clairvoyant import Clairvoyant, Plan
from penstock.sim.following import periods_to_start

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

MARGINS = np.round(np.arange(-0.3, 1.5, 0.02), 2)
HOLDS = (0, 1, 2, 3, 5, 8, 12, 18, 27, 40, 60, 90)  # periods
LEVELS = (0.5, 0.6, 0.7, 0.75, 0.8, 0.85, 0.9, 0.93, 0.95, 0.97, 0.98, 0.99, 0.995)
REMEMBERED = 1440  # periods that a forecaster sees: two hours, as `promise` does

SPREADS: dict[str, Callable[[Floats, float], Floats]] = {
    "in rows/s": lambda rates, mean: np.full_like(rates, mean),
    "as counts scatter": lambda rates, mean: np.sqrt(mean * rates),
    "relative": lambda rates, _mean: rates,
}


@dataclass(frozen=True)
class Planned:
    """The rate that is planned for, period by period, and by which constant."""

    name: str
    rates_per_s: Floats


@dataclass(frozen=True)
class Asked:
    """One of the grid: what it cost and how many rows were late."""

    planned: str
    hold: int
    sizes: Ints  # asked for, in each period
    cost: float
    changes: int
    late_rows: float


class Informed:
    """All constants of the grid side by side, for what is known of the load."""

    def __init__(self, planner: Clairvoyant) -> None:
        self.planner, self._flow = planner, planner.flow
        scenario = self._flow.scenario
        self._spans_s = np.diff(self._flow.edges_s)
        self._ahead = periods_to_start(scenario)
        self._first = scenario.cluster.executors
        self.rates_per_s: Floats = self._flow.rows / self._spans_s
        rng = np.random.default_rng(scenario.seed)
        self.counted_per_s: Floats = rng.poisson(self._flow.rows) / self._spans_s

    def known_ahead(self) -> Floats:
        """The highest true rate until what is asked for now has begun to serve."""
        padded = np.append(self.rates_per_s, np.full(self._ahead, self.rates_per_s[-1]))
        return np.asarray(sliding_window_view(padded, self._ahead + 1).max(axis=1))

    def last_value(self) -> Floats:
        """The rate that was counted in the period before; in the first, that of the first size."""
        return np.append(self._served_per_s[self._first_place], self.counted_per_s[:-1])

    def forecast(self, by: PathForecaster) -> Floats:
        """The highest rate that a forecaster expects until then; the last one where it is silent.

        It sees what was counted so far and nothing else.
        """
        steps = np.arange(1, self._ahead + 2)
        expected = self.last_value()
        for now in range(2, len(expected)):
            said = by.paths(self.counted_per_s[max(0, now - REMEMBERED) : now], steps)[-1]
            if np.isfinite(said).all():
                expected[now] = said.max()
        return expected

    def with_margins(self, ahead_per_s: Floats) -> Iterator[Planned]:
        """A rate ahead with each margin of the grid."""
        mean = float(self.rates_per_s.mean())
        for name, spread in SPREADS.items():
            each = spread(ahead_per_s, mean)
            for margin in MARGINS:
                yield Planned(f"margin {margin:g} {name}", ahead_per_s + margin * each)

    def at_levels(self) -> Iterator[Planned]:
        """The quantiles by which `promise` plans: of the forecaster with the best record so far."""
        steps = (*range(1, self._ahead + 2), 2 * self._ahead + 2)
        upper = np.tile(self.last_value(), (len(LEVELS), 1))
        for now in range(2, upper.shape[1]):
            seen = self.counted_per_s[max(0, now - REMEMBERED) : now]
            share = self._flow.scenario.share
            ahead = load_ahead(seen, steps, share, USUAL_FORECASTERS, self._ahead + 1)
            upper[:, now] = [ahead.upper_per_s(level)[:-1].max() for level in LEVELS]
        for level, rates in zip(LEVELS, upper, strict=True):
            yield Planned(f"level {level:g}", rates)

    def cheapest(self, planned: Iterable[Planned], most_changes: int | None = None) -> Asked | None:
        """Of the grid, the one that keeps the share at the least cost; None where none does."""
        kept = [
            one
            for one in self.all_of_them(list(planned))
            if one.late_rows <= self.planner.allowed_rows
            and (most_changes is None or one.changes <= most_changes)
        ]
        return min(kept, key=lambda one: (one.cost, one.changes), default=None)

    def all_of_them(self, planned: Sequence[Planned]) -> Iterator[Asked]:
        """What each comes to, kept for each of the times."""
        targets = np.stack([self._needed(one.rates_per_s) for one in planned])
        targets[:, 0] = self._first
        for hold in HOLDS:
            asked = _kept(targets, hold)
            late = self.planner.late_rows_of(self._serving(asked))
            costs = asked @ self._spans_s
            changes = np.count_nonzero(np.diff(asked, axis=1), axis=1)
            for row, one in enumerate(planned):
                yield Asked(
                    one.name, hold, asked[row],
                    float(costs[row]), int(changes[row]), float(late[row]),
                )  # fmt: skip

    def by_parts(self, asked: Asked, plan: Plan, parts: int = 4) -> str:
        """What it cost over what a plan does, in each part of the run."""
        mine = np.array_split(asked.sizes * self._spans_s, parts)
        theirs = np.array_split(self.planner.costs_of(np.array(plan.sizes)), parts)
        return ", ".join(f"{m.sum() / t.sum():.2f}" for m, t in zip(mine, theirs, strict=True))

    @property
    def _first_place(self) -> int:
        return int(np.searchsorted(self._flow.sizes, self._first))

    @property
    def _served_per_s(self) -> Floats:
        """The highest steady rate at which each size keeps the bound."""
        bound_s = self._flow.scenario.max_latency_s
        processors = self._flow.sizes * self._flow.scenario.cluster.slots
        row_s = self._flow.work_s / float(self._flow.rows.sum())
        return np.asarray((1 - 2 * self._flow.overheads_s / bound_s) * processors / row_s)

    def _needed(self, rates_per_s: Floats) -> Ints:
        place = np.searchsorted(np.maximum.accumulate(self._served_per_s), rates_per_s)
        return np.asarray(self._flow.sizes[np.minimum(place, len(self._flow.sizes) - 1)])

    def _serving(self, asked: Ints) -> Ints:
        """What is up in each period, of what was asked for."""
        before = np.full((len(asked), self._ahead), self._first)
        windows = sliding_window_view(np.hstack([before, asked]), self._ahead + 1, axis=1)
        return np.asarray(windows.min(axis=2))


def _kept(targets: Ints, hold: int) -> Ints:
    padded = np.hstack([np.repeat(targets[:, :1], hold, axis=1), targets])
    return np.asarray(sliding_window_view(padded, hold + 1, axis=1).max(axis=2))
