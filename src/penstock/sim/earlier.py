"""What earlier runs would have taught, where a scenario has their load."""

import numpy as np

from penstock.forecast.calendar import DAY_SLOTS, RateCalendar
from penstock.sim.scenario import Scenario


def calendar_of(scenario: Scenario) -> RateCalendar | None:
    """The rates of the run that ended when this one begins; None where the scenario has none."""
    slot_s = scenario.day_s / DAY_SLOTS
    seen = []
    for source in scenario.sources:
        if source.earlier is None:
            return None
        length_s = source.earlier.duration_s
        moments_s = np.arange(slot_s / 2, length_s, slot_s)
        seen.append((moments_s - length_s, source.earlier.rate_per_s(moments_s)))
    at_s = np.unique(np.concatenate([moments_s for moments_s, _ in seen]))
    rates = sum(np.interp(at_s, moments_s, rate, left=0.0) for moments_s, rate in seen)
    return RateCalendar.of(np.column_stack([at_s, rates]), slot_s)
