"""The rate ahead as a distribution: the forecaster that was best lately, and how far it was off.

Each forecaster is judged by its own record: the quantile loss, at the level asked for, of what it
expected `steps` ahead once its usual error is added. The errors of the best one give the quantiles
of what is to come (split conformal prediction, Vovk et al. 2005); recent errors weigh more, since
loads change their nature. They are over the square root of what was expected, as counts scatter:
relative, a jump from nearly nothing would have high loads grow as many times over; in rows a
second, too little would be kept ready at high loads.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from penstock.forecast.paths import PathForecaster, Trend
from penstock.model.observation import Floats

HALF_LIFE = 480  # steps after which an error weighs half
FEW = 12  # errors; with fewer the width is partly a guess
FIRST_WIDTH = 0.3  # of the rate: the guess, before any error is known
_LEAST_KNOWN = 4  # errors, before any other is far above them
_FAR = 2.0  # times the largest error so far: what a forecaster did not know of
_LEAST_RISE = 0.1  # of what is expected: less is nothing to be surprised by
_RISES = Trend(2, newest=1)  # where all forecasters are refuted
_GUESS_STEPS = 4  # after which the guess is no wider


@dataclass(frozen=True)
class LoadAhead:
    """The rate at some steps ahead: what is expected, and how far off that was in the past."""

    forecaster: str
    recurs: bool  # whether that one knows when a load will come again
    surprised: bool  # whether the present is far above what any forecaster knew of
    steps: tuple[int, ...]
    expected_per_s: Floats
    _errors: Floats  # (moments, near steps), over `_spread`; NaN where a step is yet to come
    _weights: Floats
    _spread: Floats  # of each step: the square root of what is expected
    _guess: Floats  # of the near steps: how far off it may be, while few errors are known

    def upper_per_s(self, level: float) -> Floats:
        """What the rate stays below with a probability of `level`, at each step.

        Beyond the step that forecasters were judged at, what will be planned for once it is as
        near: what is expected, and the width of that step. A plan that took the width of today,
        or none, would be changed by a little in every period.
        """
        width = _width(self._errors, self._weights, level, self._guess)
        width = np.concatenate([width, np.full(len(self.steps) - len(width), width[-1])])
        return np.maximum(0.0, self.expected_per_s + width * self._spread)


def load_ahead(
    series: Floats, steps: tuple[int, ...], level: float, forecasters: Sequence[PathForecaster],
    judged_at: int,
) -> LoadAhead:  # fmt: skip
    """The rate at `steps` after a series without gaps; `judged_at` is one of them."""
    near = steps[: steps.index(judged_at) + 1]
    then = np.arange(len(series) - 1)[:, None] + np.array(near)
    came = np.where(then < len(series), series[np.minimum(then, len(series) - 1)], np.nan)
    found: tuple[float, LoadAhead] | None = None
    load_known = bool(series[:-judged_at].any())  # before any load came, nothing was known
    refuted, vouched = False, False  # of those whose record is long enough to be set against it
    for forecaster in forecasters:
        paths = forecaster.paths(series, np.array(steps))
        if not np.isfinite(paths[-1]).all():
            continue  # it has nothing to say now
        record, spread = _record(series, paths, came, forecaster, steps)
        if load_known and _judged(record, judged_at):
            if _refuted(record, judged_at):
                refuted = True
                continue
            vouched = True
        loss = _loss(record, level, spread) / forecaster.trust
        if found is None or loss < found[0]:
            found = loss, record
    # By a step or by a ramp: nobody knows yet, so it may rise on for two periods. Who has no record
    # is not asked then: it was not refuted only for want of errors to set against what came.
    if found is None or (refuted and not vouched):
        record, _ = _record(series, _RISES.paths(series, np.array(steps)), came, _RISES, steps)
        # What it rises by is in what is expected already, so not in the errors once more.
        old = slice(0, max(0, len(record._errors) - judged_at))
        errors, weights = record._errors[old], record._weights[old]
        return replace(record, surprised=True, _errors=errors, _weights=weights)
    return found[1]


def _record(
    series: Floats, paths: Floats, came: Floats, by: PathForecaster, steps: tuple[int, ...]
) -> tuple[LoadAhead, Floats]:
    """What a forecaster expects, and its errors at each near step that came since."""
    near = came.shape[1]
    floor = max(float(series.mean()), 1e-9)
    known = np.isfinite(paths[:-1]).all(axis=1)
    thought = paths[:-1][known, :near]
    spread = np.sqrt(np.maximum(thought, floor))
    errors = (came[known] - thought) / spread
    weights = 0.5 ** (np.arange(len(series), 1, -1)[known] / HALF_LIFE)
    part = FIRST_WIDTH * np.minimum(1.0, np.sqrt(np.array(steps[:near]) / _GUESS_STEPS))
    now = np.sqrt(np.maximum(paths[-1], floor))
    return LoadAhead(
        by.name, by.recurs, False, steps, paths[-1], errors, weights, now, part * now[:near]
    ), spread


def _width(errors: Floats, weights: Floats, level: float, guess: Floats) -> Floats:
    """The quantile of the errors at each step; partly a guess where there are few of them."""
    counts = np.isfinite(errors).sum(axis=0)
    if not counts.any():
        return guess
    known = np.where(counts > 0, weighted_quantiles(errors, weights, level), 0.0)
    doubt = FEW / (FEW + counts)
    width: Floats = known + doubt * np.maximum(0.0, guess - known)
    return width


def _judged(record: LoadAhead, judged_at: int) -> bool:
    """Whether enough of its errors are known from before what comes now."""
    errors = record._errors[:, 0]
    known = np.isfinite(errors[:-judged_at]).sum() >= _LEAST_KNOWN
    return bool(known and np.isfinite(errors[-1]))


def _refuted(record: LoadAhead, judged_at: int) -> bool:
    """Whether what came just now is far above anything that its errors knew of.

    Its loss tells so only once the step it is judged at has come. Until then, one that expects a
    load to go back to what it was would be believed, whatever there is now.
    """
    errors = record._errors[:, 0]
    largest = float(np.nanmax(np.abs(errors[:-judged_at])))
    return bool(errors[-1] > max(_FAR * largest, _LEAST_RISE * float(record._spread[0])))


def _loss(record: LoadAhead, level: float, spread: Floats) -> float:
    """Mean quantile loss in rows a second; infinite without a record.

    At the last of the near steps; while few errors are known of that, at all of them: who misses
    the nearest will not hit the last, and a load that climbs is seen before it is missed.
    """
    errors = record._errors
    if not len(errors):
        return math.inf
    if np.isfinite(errors[:, -1]).sum() >= FEW:
        errors, spread = errors[:, -1:], spread[:, -1:]
    over = (errors - weighted_quantiles(errors, record._weights, level)) * spread
    losses = np.where(over > 0, level * over, (level - 1) * over)
    weights = np.where(np.isfinite(losses), record._weights[:, None], 0.0)
    return float(np.nansum(losses * weights) / weights.sum())


def weighted_quantiles(values: Floats, weights: Floats, level: float) -> Floats:
    """For each column the least value that holds at least `level` of the weight; NaN is none.

    The value that is still to come counts as one more of the newest, above all others, as in
    conformal prediction; where that alone is the quantile, it is the largest seen.

    >>> weighted_quantiles(np.array([[1.0], [2.0], [3.0]]), np.ones(3), 0.5).tolist()
    [2.0]
    """
    order = np.argsort(values, axis=0, kind="stable")  # NaN last
    columns = np.arange(values.shape[1])
    ordered = values[order, columns]
    known = np.isfinite(ordered)
    reached = np.cumsum(np.where(known, weights[order], 0.0), axis=0)
    wanted = level * (reached[-1] + weights.max())
    last = np.maximum(1, known.sum(axis=0)) - 1
    place = np.minimum((reached < wanted - 1e-12).sum(axis=0), last)
    found: Floats = ordered[place, columns]
    return found
