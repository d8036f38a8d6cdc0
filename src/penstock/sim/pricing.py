"""What a simulated policy would cost over a longer time, as a range and not a number.

The recording is cut into blocks, and the time is put together from them by chance, as often as it
takes to see how far totals differ (the block bootstrap, Kuensch 1989). The range is that of a load
that goes on as recorded; it knows nothing of days that were not.
"""

from dataclasses import dataclass

import numpy as np

from penstock.sim.run import SimulationResult

BLOCKS = 24
DRAWN = 2_000
_EDGES = (0.05, 0.5, 0.95)


@dataclass(frozen=True)
class Bill:
    """Executor-hours and their price: nine of ten such times lie between the low and the high."""

    executor_hours: float
    low: float
    middle: float
    high: float


def bill(result: SimulationResult, price_per_hour: float, hours: float, seed: int) -> Bill:
    """The price of so many hours that are like the simulated ones, start-ups of executors paid."""
    there = result.executors.astype(np.float64)
    if not len(there):
        return Bill(0.0, 0.0, 0.0, 0.0)
    used_s, paid_s = result.executor_seconds, result.paid_executor_seconds
    extra = max(1.0, paid_s / used_s) if used_s > 0 else 1.0
    blocks = [float(part.mean()) for part in np.array_split(there, min(BLOCKS, len(there)))]
    drawn = np.random.default_rng(seed).choice(blocks, size=(DRAWN, len(blocks))).mean(axis=1)
    low, middle, high = np.quantile(drawn, _EDGES) * extra * hours * price_per_hour
    return Bill(float(there.mean()) * extra * hours, float(low), float(middle), float(high))
