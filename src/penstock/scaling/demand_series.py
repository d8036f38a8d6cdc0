"""The demand of every component over the newest periods, as columns: see demand.py.

A column is what `demands` would say after that period; all of them are read at once, since a
decision looks at dozens of them.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from penstock.model.component_columns import (
    ARRIVAL_SCV,
    ARRIVALS,
    BACKLOG,
    PARALLELISM,
    SERVICE,
    SERVICE_SCV,
)
from penstock.model.observation import Floats, Observation
from penstock.scaling.component_table import stacked
from penstock.scaling.demand import excess_rows, has_rates, idle, last_service_times_s
from penstock.scaling.policies.policy import ScalingContext

Bools = NDArray[np.bool_]


@dataclass(frozen=True)
class DemandSeries:
    """One row for each component, one column for each of the newest periods; NaN is unknown."""

    names: tuple[str, ...]
    periods: tuple[Observation, ...]
    arrival_rate_per_s: Floats
    backlog_rate_per_s: Floats
    service_time_s: Floats
    parallelism: Floats  # as measured
    arrival_scv: Floats
    service_scv: Floats

    @property
    def rate_per_s(self) -> Floats:
        """Rows a second that must be served: new ones and the backlog."""
        return self.arrival_rate_per_s + self.backlog_rate_per_s

    @property
    def known(self) -> Bools:
        """Of each period, whether the load of all components is known."""
        rates = self.rate_per_s
        loads = np.where(rates == 0, 0.0, rates * self.service_time_s)
        return np.asarray(np.isfinite(loads).all(axis=0))


def demand_series(context: ScalingContext, names: tuple[str, ...], most: int) -> DemandSeries:
    """The newest `most` periods of a window that has one."""
    start = max(0, len(context.window) - most)
    first = start
    while context.sharing == "time" and first > 0 and not has_rates(context.window[first]):
        first -= 1  # an older period speaks for those in which no batch ended
    periods = context.window[first:]
    table = stacked(periods, names)
    services = _known_services(context, table[:, SERVICE], names, first)
    if context.sharing == "time":
        arrivals, backlog = _shared(context, periods, table[:, ARRIVALS])
    else:
        arrivals = table[:, ARRIVALS]
        backlog = table[:, BACKLOG] / context.limits.max_latency_s
    backlog = np.where(np.isnan(arrivals), 0.0, backlog)
    kept = slice(start - first, None)
    return DemandSeries(
        names,
        periods[kept],
        arrivals[kept].T,
        backlog[kept].T,
        services[kept].T,
        np.nan_to_num(table[kept, PARALLELISM]).T,
        _positive(table[kept, ARRIVAL_SCV]).T,
        _positive(table[kept, SERVICE_SCV]).T,
    )


def _known_services(
    context: ScalingContext, services: Floats, names: tuple[str, ...], first: int
) -> Floats:
    """The newest known service times; they outlive a period in which nothing arrived."""
    found = np.where(services >= 0, services, np.nan)
    missing = np.isnan(found)
    if not missing.any():
        return found
    if missing[0].any() and first:
        older = last_service_times_s(context.window[:first])
        known = np.array([older.get(name, math.nan) for name in names])
        found[0] = np.where(missing[0], known, found[0])
    for row in range(1, len(found)):
        found[row] = np.where(np.isnan(found[row]), found[row - 1], found[row])
    return found


def _shared(
    context: ScalingContext, periods: tuple[Observation, ...], rates: Floats
) -> tuple[Floats, Floats]:
    """Shared in time: the newest rates that mean something, brought to the rate of each period."""
    arrivals, backlog = rates.copy(), np.zeros_like(rates)
    source: int | None = None
    for row, observation in enumerate(periods):
        resting = idle(observation)
        source = row if not resting and has_rates(observation) else source
        speaks = row if resting or source is None else source
        reference = periods[speaks].arrival_rate_per_s
        if reference > 0 and not (source is None and not resting):
            behind = excess_rows(context, observation) / context.limits.max_latency_s
            arrivals[row] = rates[speaks] * (observation.arrival_rate_per_s / reference)
            backlog[row] = rates[speaks] * (behind / reference)
        elif resting:
            arrivals[row] = np.where(np.isnan(rates[row]), 0.0, rates[row])
    return arrivals, backlog


def _positive(scv: Floats) -> Floats:
    return np.where(scv >= 0, scv, 1.0)
