"""The rate that earlier runs saw at each time of the week."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from penstock.model.observation import Floats

SLOT_S = 60.0
DAY_SLOTS, WEEK_SLOTS = 1440, 10080
LONGEST_GAP = 10  # slots without any observation between two that have some


@dataclass(frozen=True)
class RateCalendar:
    """Mean rates by minutes of the week (UTC, since 1970); empty where no run was seen.

    Where a simulated day is shorter, so is the slot of a minute.
    """

    rates_per_s: tuple[float, ...] = ()
    slot_s: float = SLOT_S

    def __bool__(self) -> bool:
        return bool(self.rates_per_s)

    @classmethod
    def of(
        cls, seen: Sequence[tuple[float, float]] | Floats, slot_s: float = SLOT_S
    ) -> "RateCalendar":
        """From moments and rates; a slot without any takes the mean of that time on other days."""
        if not len(seen):
            return cls()
        at_s, rates = np.array(seen).T
        slot = (at_s // slot_s).astype(np.int64) % WEEK_SLOTS
        count = np.bincount(slot, minlength=WEEK_SLOTS).astype(np.float64)
        week = np.bincount(slot, rates, WEEK_SLOTS) / np.where(count > 0, count, np.nan)
        days, known = week.reshape(-1, DAY_SLOTS), count.reshape(-1, DAY_SLOTS) > 0
        any_day = np.where(known, days, 0.0).sum(axis=0)
        any_day /= np.where(known.any(axis=0), known.sum(axis=0), np.nan)
        return cls(tuple(_bridged(np.where(known, days, any_day).ravel()).tolist()), slot_s)

    def usual_per_s(self, moments_s: Floats) -> Floats:
        """The usual rate at each moment, linear between the middles of slots; NaN if not known.

        Where only one of both neighbours is known, that one.
        """
        if not self.rates_per_s:
            return np.full(len(moments_s), np.nan)
        place = moments_s / self.slot_s - 0.5
        before = np.floor(place).astype(np.int64)
        earlier, later = self._rates[before % WEEK_SLOTS], self._rates[(before + 1) % WEEK_SLOTS]
        earlier = np.where(np.isnan(earlier), later, earlier)
        later = np.where(np.isnan(later), earlier, later)
        return earlier + (later - earlier) * (place - before)

    @cached_property
    def _rates(self) -> Floats:
        return np.asarray(self.rates_per_s)


def _bridged(rates: Floats) -> Floats:
    """The same with short gaps filled in, linear between what is known on both sides."""
    slots, known = np.arange(len(rates)), np.flatnonzero(np.isfinite(rates))
    after = np.searchsorted(known, slots)
    gap = known[np.minimum(after, len(known) - 1)] - known[np.maximum(after - 1, 0)]
    inside = (after > 0) & (after < len(known)) & (gap <= LONGEST_GAP)
    filled: Floats = np.where(
        np.isnan(rates) & inside, np.interp(slots, known, rates[known]), rates
    )  # fmt: skip
    return filled
