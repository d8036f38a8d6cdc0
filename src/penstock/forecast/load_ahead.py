"""The rate ahead as a distribution: the forecaster that was best lately, and how far it was off.

Each forecaster is judged by its own record: the quantile loss, at the level asked for, of what it
expected `steps` ahead once its usual error is added. The errors of the best one, relative to what
it expected or to the mean of the series where that is more (a jump from nearly nothing must not
widen what is expected of high loads), give the quantiles of what is to come (split conformal
prediction, Vovk et al. 2005); recent errors weigh more, since loads change their nature.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from penstock.forecast.paths import PathForecaster
from penstock.model.observation import Floats

HALF_LIFE = 480  # steps after which an error weighs half
FEW = 12  # errors; with fewer the width is partly a guess
FIRST_WIDTH = 0.3  # of the rate: the guess, before any error is known
_GUESS_STEPS = 4  # after which the guess is no wider


@dataclass(frozen=True)
class LoadAhead:
    """The rate at some steps ahead: what is expected, and how far off that was in the past."""

    forecaster: str
    recurs: bool  # whether that one knows when a load will come again
    steps: tuple[int, ...]
    expected_per_s: Floats
    _errors: Floats  # (moments, steps), relative to _scale
    _weights: Floats
    _scale: Floats

    @property
    def errors(self) -> int:
        """How many errors the quantiles rest on."""
        return len(self._errors)

    def upper_per_s(self, level: float) -> Floats:
        """What the rate stays below with a probability of `level`, at each step."""
        width = _width(self._errors, self._weights, level, self.steps)
        return np.maximum(0.0, self.expected_per_s + width * self._scale)

    def planned_per_s(self, level: float, judged_at: int) -> Floats:
        """What will be planned for at each step, as far as can be said now.

        Until `judged_at`, what the rate stays below; beyond, what is expected and the width that
        there will be by then, when it is as near: a plan that took the width of today, or none,
        would be changed by a little in every period.
        """
        width = _width(self._errors, self._weights, level, self.steps)
        near = self.steps.index(judged_at)
        width[near + 1 :] = width[near]
        return np.maximum(0.0, self.expected_per_s + width * self._scale)


def load_ahead(
    series: Floats, steps: tuple[int, ...], level: float, forecasters: Sequence[PathForecaster],
    judged_at: int,
) -> LoadAhead:  # fmt: skip
    """The rate at `steps` after a series without gaps; `judged_at` is one of them."""
    column = steps.index(judged_at)
    found: tuple[float, LoadAhead] | None = None
    for forecaster in forecasters:
        paths = forecaster.paths(series, np.array(steps))
        if not np.isfinite(paths[-1]).all():
            continue  # it has nothing to say now
        record, scale = _record(series, paths, forecaster, steps)
        loss = _loss(record, level, column, scale) / forecaster.trust
        if found is None or loss < found[0]:
            found = loss, record
    assert found is not None, "one forecaster at least must always expect something"
    return found[1]


def _record(
    series: Floats, paths: Floats, by: PathForecaster, steps: tuple[int, ...]
) -> tuple[LoadAhead, Floats]:
    floor = float(series.mean())
    moments = np.arange(max(0, len(series) - steps[-1]))
    came, thought = series[moments[:, None] + np.array(steps)], paths[: len(moments)]
    known = np.isfinite(thought).all(axis=1)
    scale = np.maximum(thought[known], floor)
    with np.errstate(divide="ignore", invalid="ignore"):
        errors = np.where(scale > 0, (came[known] - thought[known]) / scale, 0.0)
    weights = 0.5 ** ((len(series) - moments)[known] / HALF_LIFE)
    now = np.maximum(paths[-1], floor)
    return LoadAhead(by.name, by.recurs, steps, paths[-1], errors, weights, now), scale


def _width(errors: Floats, weights: Floats, level: float, steps: tuple[int, ...]) -> Floats:
    """The quantile of the errors at each step; partly a guess where there are few of them."""
    guess = FIRST_WIDTH * np.minimum(1.0, np.sqrt(np.array(steps) / _GUESS_STEPS))
    if not len(errors):
        return guess
    known = weighted_quantiles(errors, weights, level)
    doubt = FEW / (FEW + len(errors))
    return known + doubt * np.maximum(0.0, guess - known)


def _loss(record: LoadAhead, level: float, column: int, scale: Floats) -> float:
    """Mean quantile loss in rows a second; infinite without a record."""
    if not record.errors:
        return math.inf
    errors, weights = record._errors[:, [column]], record._weights
    width = _width(errors, weights, level, record.steps[column : column + 1])
    over = (errors[:, 0] - width[0]) * scale[:, column]
    losses = np.where(over > 0, level * over, (level - 1) * over)
    return float((losses * weights).sum() / weights.sum())


def weighted_quantiles(values: Floats, weights: Floats, level: float) -> Floats:
    """For each column the least value that holds at least `level` of the weight.

    The value that is still to come counts as one more of the newest, above all others, as in
    conformal prediction; where that alone is the quantile, it is the largest seen.

    >>> weighted_quantiles(np.array([[1.0], [2.0], [3.0]]), np.ones(3), 0.5).tolist()
    [2.0]
    """
    order = np.argsort(values, axis=0, kind="stable")
    reached = np.cumsum(weights[order], axis=0)
    wanted = level * (reached[-1] + weights.max())
    place = np.minimum((reached < wanted - 1e-12).sum(axis=0), len(values) - 1)
    columns = np.arange(values.shape[1])
    found: Floats = values[order[place, columns], columns]
    return found
