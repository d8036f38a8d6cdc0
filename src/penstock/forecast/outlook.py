"""What is believed of each stream's near future: the forecast, overridden by meta-data."""

from dataclasses import dataclass

import numpy as np

from penstock.errors import InvalidInput
from penstock.forecast.expectation import Bools, Rows, bounded, expected_rates, goes_by_chance
from penstock.forecast.forecaster import Forecaster, newest
from penstock.forecast.metadata import (
    JUMP,
    Defaults,
    StreamMetadata,
    completed,
    defaults_from,
    nothing_known,
)
from penstock.model.observation import Floats

_MOST_STEPS = 64  # of a horizon looked at one by one; a longer one is sampled evenly


@dataclass(frozen=True)
class Outlook:
    """Rates of the next periods, one row a stream."""

    next_rate_per_s: Floats  # X_{t+1}, by forecast
    horizon_rate_per_s: Floats  # X_{t+k}, by meta-data where it says something
    needed_rate_per_s: Floats  # the most within the horizon: what a lane must have room for
    by_chance: Bools | None = None  # streams that change at times nobody knows

    @property
    def rise_per_s(self) -> Floats:
        """The paper's delta-rate-forecast: X_{t+k} - X_{t+1}.

        Differs from Balkesen et al. 2013, s. 2.5: a stream that goes on and off by chance has none.
        What is expected of it rises while it is idle, so idle streams would leave first, many of
        them, and an overloaded lane would keep the busy ones.
        """
        rise = self.horizon_rate_per_s - self.next_rate_per_s
        return rise if self.by_chance is None else np.where(self.by_chance, 0.0, rise)


def outlook(
    history: Floats,
    horizon: int,
    forecaster: Forecaster,
    metadata: StreamMetadata | None = None,
    age_periods: Floats | None = None,
) -> Outlook:
    """The outlook over `horizon` periods; without meta-data, by forecast alone.

    A stream with neither history nor meta-data is taken for an average one. `age_periods` says
    when streams joined, where `history` does not reach back so far.
    """
    if horizon < 1:
        raise InvalidInput(f"horizon is {horizon}; it must be at least 1.")
    ends = (1, horizon) if horizon > 1 else (1,)
    ahead = forecaster.forecast(history, ends)
    unseen = np.isnan(ahead[:, 0])
    if metadata is None and not unseen.any():
        return _by_forecast(ahead)
    known = nothing_known(len(history)) if metadata is None else metadata
    defaults = defaults_from(history, known)
    plain = _by_forecast(np.where(unseen[:, None], defaults.expected_rate_per_s, ahead))
    if metadata is None:
        return plain
    return _overridden(plain, history, metadata, age_periods, defaults, horizon)


def _by_forecast(ahead: Floats) -> Outlook:
    return Outlook(ahead[:, 0], ahead[:, -1], np.maximum(ahead[:, 0], ahead[:, -1]))


def _overridden(
    plain: Outlook,
    history: Floats,
    metadata: StreamMetadata,
    age_periods: Floats | None,
    defaults: Defaults,
    horizon: int,
) -> Outlook:
    metadata = completed(metadata, defaults)
    described = np.flatnonzero(_says_something(metadata))
    if len(described) == 0:
        return plain
    past = history[described]
    age = (~np.isnan(past)).sum(axis=1) if age_periods is None else age_periods[described]
    unseen = np.isnan(past).all(axis=1) if past.shape[1] else np.ones(len(past), dtype=bool)
    least, greatest = np.full(len(described), np.nan), np.full(len(described), np.nan)
    if not unseen.all():
        least[~unseen], greatest[~unseen] = (
            np.nanmin(past[~unseen], axis=1), np.nanmax(past[~unseen], axis=1),
        )  # fmt: skip
    rows = Rows(metadata.take(described), newest(past), least, greatest, age.astype(np.float64))
    following, at_end = plain.next_rate_per_s[described], plain.horizon_rate_per_s[described]
    needed = np.zeros(len(described))
    expected = guess = following
    for step in np.unique(np.linspace(1, horizon, min(horizon, _MOST_STEPS)).astype(int)).tolist():
        share = (step - 1) / max(horizon - 1, 1)
        guess = bounded(rows, following + (at_end - following) * share, step)
        expected = expected_rates(rows, defaults, step)
        expected = np.where(np.isnan(expected), guess, expected)
        if step == 1:
            first = np.where(unseen, expected, guess)
        needed = np.maximum(needed, expected)
    columns = (plain.next_rate_per_s, plain.horizon_rate_per_s, plain.needed_rate_per_s)
    merged = [column.copy() for column in columns]
    for column, values in zip(merged, (first, expected, needed), strict=True):
        column[described] = values
    by_chance = np.zeros(len(history), dtype=bool)
    by_chance[described] = goes_by_chance(rows.metadata)
    return Outlook(merged[0], merged[1], merged[2], by_chance)


def _says_something(known: StreamMetadata) -> Bools:
    numbers = (
        known.expected_rate_per_s, known.least_rate_per_s, known.greatest_rate_per_s, known.cycle,
        known.slope_per_period, known.lifetime_periods,
    )  # fmt: skip
    said: Bools = known.transition == JUMP
    for column in numbers:
        said |= ~np.isnan(column)
    return said
