"""The course of micro-batches along a rate that changes, while processors come and go.

Back to back, a batch takes what arrived while the one before it ran:

    rows(n+1) = arrivals during B(n),   B(n+1) = O(K) + row_s rows(n+1) / K

K are the processors when it begins. Its oldest row waited through all of B(n), its newest not at
all, so its rows take between B(n+1) and B(n) + B(n+1). With an interval I, a batch begins at the
next multiple of it, and the oldest row waited for I. All candidates are followed side by side.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from penstock.model.batch_overhead import BatchOverhead, steady_latency_s
from penstock.model.observation import Floats

_FAR_S = 1e9  # beyond any horizon
_HALVINGS = 30  # of an interval that holds a quantile
MOST_BATCHES = 400  # of a course; what is left then is taken to go on alike


@dataclass(frozen=True)
class RatePath:
    """Rates of the next steps, each `step_s` long; the last one holds on.

    `rates_per_s` is one path for all candidates, or a row for each of them.
    """

    rates_per_s: Floats
    step_s: float

    @property
    def now_per_s(self) -> Floats:
        """The rate of the first step."""
        first: Floats = self._rows[:, 0]
        return first

    @cached_property
    def _rows(self) -> Floats:
        return np.atleast_2d(self.rates_per_s)

    @cached_property
    def _so_far(self) -> Floats:
        before = np.zeros((len(self._rows), 1))
        return np.concatenate([before, np.cumsum(self._rows, axis=1) * self.step_s], axis=1)

    def rows_by(self, at_s: Floats) -> Floats:
        """Rows that arrive from now until each candidate's moment."""
        at_s = np.minimum(np.maximum(at_s, 0.0), _FAR_S)
        step = np.minimum((at_s / self.step_s).astype(np.int64), self._rows.shape[1] - 1)
        own = np.arange(len(at_s)) if len(self._rows) > 1 else 0
        found: Floats = (
            self._so_far[own, step] + (at_s - step * self.step_s) * self._rows[own, step]
        )
        return found


@dataclass(frozen=True)
class Capacities:
    """Processors of each candidate over time: from each moment on so many, the first from now."""

    steps: tuple[tuple[float, Floats], ...]

    def at(self, moments_s: Floats) -> Floats:
        """Processors of each candidate at its own moment."""
        processors = self.steps[0][1]
        for from_s, count in self.steps[1:]:
            processors = np.where(moments_s >= from_s, count, processors)
        return processors


@dataclass(frozen=True)
class Work:
    """What batches cost: a fixed part, and processor-seconds for each row of the sources.

    Where rows take longer the more processors there are, `contention` is by how much, for each
    processor beyond the first: row_s is what a row takes on one.
    """

    overhead: BatchOverhead
    row_s: float
    interval_s: float = 0.0
    stretch: float = 1.0  # what slow results take, over what they would were batches alike
    contention: float = 0.0

    def own_s(self, processors: Floats) -> Floats:
        """Length of a batch without rows."""
        cost = self.overhead
        return cost.fixed_s + cost.per_processor_s * processors + cost.work_s / processors

    def each_s(self, processors: Floats) -> Floats:
        """What a row adds to the length of a batch."""
        spread = 1 + self.contention * np.maximum(0.0, processors - 1)
        return self.row_s * spread / processors

    def batch_s(self, rows: Floats, processors: Floats) -> Floats:
        """Length of batches of so many rows."""
        return np.minimum(self.own_s(processors) + self.each_s(processors) * rows, _FAR_S)

    def rows_per_s(self, processors: Floats) -> Floats:
        """Rows a second that processors can serve at all."""
        return 1.0 / np.maximum(self.each_s(processors), 1e-12)


def steady_share_s(
    work: Work, rate_per_s: Floats, processors: Floats, share: float = 1.0
) -> Floats:
    """Latency that a share of the rows keeps at a steady rate; infinite where rows pile up.

    Back to back, with a = rate x what a row adds: B = O / (1 - a), and the share q takes B + q B.
    At an interval I that is long enough: B = O + a I, and the share q takes B + q I. Batches that
    are now longer, now shorter make some rows slower, and serve as many.
    """
    used = rate_per_s * work.each_s(processors)
    alike_s = steady_latency_s(work.own_s(processors), used, share, interval_s=work.interval_s)
    return work.stretch * alike_s


@dataclass(frozen=True)
class Course:
    """What becomes of the rows that arrive before the horizon, for each candidate."""

    latency_s: Floats  # that the share of the rows keeps
    late_rows: Floats
    late_row_s: Floats  # how late they are, added up
    rows: Floats

    def parted(self, count: int) -> list["Course"]:
        """The same for candidates that were so many groups of one size."""
        columns = (self.latency_s, self.late_rows, self.late_row_s, self.rows)
        return [Course(*part) for part in zip(*(np.split(c, count) for c in columns), strict=True)]


def follow(
    path: RatePath, work: Work, capacity: Capacities, waiting_rows: float, bound_s: float,
    horizon_s: float, share: float = 1.0,
) -> Course:  # fmt: skip
    """Batches from now until the rows of the horizon are done, from a batch half-way through.

    `waiting_rows` are in no finished batch: some run, the others gather meanwhile.
    """
    bound_s /= work.stretch
    rate = np.maximum(path.now_per_s, 1e-9)
    now = np.zeros(len(capacity.steps[0][1]))
    running, left_s = _under_way(path, work, capacity.at(now), waiting_rows)
    gathered = np.maximum(0.0, waiting_rows - running)
    start_s, oldest_s = left_s, -gathered / rate
    so_far = path.rows_by(start_s)
    rows = gathered + so_far
    late, late_s = np.zeros_like(now), np.zeros_like(now)
    batches = list[tuple[Floats, Floats, Floats]]()
    for _ in range(MOST_BATCHES):
        length_s = work.batch_s(rows, capacity.at(start_s))
        end_s = start_s + length_s
        spread_s = np.maximum(start_s - oldest_s, 1e-9)
        live = oldest_s < horizon_s
        # Rows that arrive after the horizon can still be helped by what is decided next.
        counted = np.clip((np.minimum(start_s, horizon_s) - oldest_s) / spread_s, 0.0, 1.0)
        part = np.clip((end_s - bound_s - oldest_s) / spread_s, 0.0, counted)
        late += np.where(live, rows * part, 0.0)
        # Of the late rows the oldest is the latest, and the newest is late by as much less.
        most_s = np.maximum(0.0, end_s - bound_s - oldest_s)
        late_s += np.where(live, rows * part * (most_s - part * spread_s / 2), 0.0)
        slowest_s = np.where(live, end_s - oldest_s, 0.0)
        batches.append((slowest_s, counted * spread_s, np.where(live, rows * counted, 0.0)))
        if not live.any():
            break
        oldest_s = start_s
        start_s = _next_start(start_s, end_s, work.interval_s)
        taken, so_far = so_far, path.rows_by(start_s)
        rows = so_far - taken
    slowest, spread, taken = (np.array(column) for column in zip(*batches, strict=True))
    kept_s = _share_s(slowest, spread, taken, share)
    return Course(work.stretch * kept_s, late, work.stretch * late_s, taken.sum(axis=0))


def _share_s(slowest_s: Floats, spread_s: Floats, rows: Floats, share: float) -> Floats:
    """What a share of all rows stays within, where those of a batch are spread evenly.

    (batches, candidates): the rows of one take from `spread_s` less than its slowest up to that.
    """
    high: Floats = slowest_s.max(axis=0)
    if share >= 1:
        return high
    low = np.zeros_like(high)
    fastest_s, spread_s = slowest_s - spread_s, np.maximum(spread_s, 1e-9)
    wanted = share * rows.sum(axis=0)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        within = (rows * np.clip((middle - fastest_s) / spread_s, 0.0, 1.0)).sum(axis=0)
        enough = (within >= wanted) & (wanted > 0)
        low, high = np.where(enough, low, middle), np.where(enough, middle, high)
    return high


def _under_way(
    path: RatePath, work: Work, processors: Floats, waiting_rows: float
) -> tuple[Floats, Floats]:
    """Rows of the batch that runs, taken to be half done, and how long it will still run.

    In the mean a batch under way holds two thirds of what waits: its own rows, and half as many
    that gathered since it began.
    """
    running = np.full_like(processors, waiting_rows * 2 / 3)
    return running, work.batch_s(running, processors) / 2


def _next_start(start_s: Floats, end_s: Floats, interval_s: float) -> Floats:
    return np.maximum(end_s, start_s + interval_s) if interval_s > 0 else end_s
