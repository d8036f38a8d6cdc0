"""The forecast step of the loop: the rate that comes before new processors could serve it.

A policy that looks at the present asks for a processor when it is needed, and then waits for it to
start. So the newest observation is shown to it with the rate of `horizon_s` ahead, where that is
higher; a fall that is only foreseen changes nothing, since scaling in too early is what hurts.
It says so (`foreseen`): its latency is that of the rate that was measured, and teaches nothing of
this one.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from penstock.forecast.forecaster import Forecaster
from penstock.forecast.holt import Holt
from penstock.model.observation import Observation
from penstock.scaling.foreseen import foreseen_window

LEAST_OBSERVATIONS = 3  # a line through two points says nothing about the third
MOST_OBSERVATIONS = 20
MOST_GROWTH = 4.0  # a trend that is steeper than this within the horizon is not believed further


@dataclass(frozen=True)
class Foresight:
    """Looks `horizon_s` ahead along the recent rates of the sources."""

    horizon_s: float
    forecaster: Forecaster = field(default_factory=Holt)

    def rate_per_s(self, window: Sequence[Observation]) -> float:
        """The rate expected at the horizon; NaN while too little is known."""
        recent = window[-MOST_OBSERVATIONS:]
        known = [one for one in recent if math.isfinite(one.arrival_rate_per_s)]
        if len(known) < LEAST_OBSERVATIONS or known[-1] is not recent[-1]:
            return math.nan
        period_s = float(np.mean([one.period_s for one in known]))
        steps = max(1, round(self.horizon_s / period_s)) if period_s > 0 else 1
        rates = np.array([[one.arrival_rate_per_s for one in recent]], dtype=np.float64)
        expected = float(self.forecaster.forecast(rates, (steps,))[0, 0])
        return min(expected, MOST_GROWTH * known[-1].arrival_rate_per_s)

    def shown(
        self, window: tuple[Observation, ...], expected_per_s: float
    ) -> tuple[Observation, ...]:
        """The window as a policy should see it that does not look ahead by itself."""
        return foreseen_window(window, expected_per_s)
