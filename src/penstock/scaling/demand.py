"""What each component is asked to do, read from the window: arrivals, backlog, service time.

A row that waits longer than the bound allows is demand too: backlog beyond what is normally
under way is to be worked off within the latency bound, so it adds backlog / bound rows a second.
"""

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from penstock.model.component_columns import ARRIVALS
from penstock.model.observation import ComponentObservation, Observation
from penstock.scaling.policies.policy import ScalingContext

# Gaps in these measurements say nothing about load, so they do not stop a scale-in.
HARMLESS_GAPS = ("latency", "state", "key_group", "node", "shuffle", "scv")


@dataclass(frozen=True)
class Demand:
    """The work that comes to one component; NaN where it is not known."""

    name: str
    arrival_rate_per_s: float
    backlog_rate_per_s: float
    service_time_s: float
    parallelism: int
    arrival_scv: float = 1.0
    service_scv: float = 1.0

    @property
    def rate_per_s(self) -> float:
        """Rows a second that must be served: new ones and the backlog."""
        return self.arrival_rate_per_s + self.backlog_rate_per_s

    @property
    def load(self) -> float:
        """Processors kept busy by that rate; zero when nothing comes."""
        return 0.0 if self.rate_per_s == 0 else self.rate_per_s * self.service_time_s

    @property
    def known(self) -> bool:
        """Whether all of it was measured."""
        return math.isfinite(self.load)


@dataclass(frozen=True)
class Demands:
    """All components in order of their names, and whether a scale-in may rest on them."""

    components: tuple[Demand, ...]
    gaps: tuple[str, ...]  # what was not measured and matters

    def __iter__(self) -> Iterator[Demand]:
        return iter(self.components)

    @property
    def complete(self) -> bool:
        """Whether everything that matters was measured."""
        return not self.gaps and bool(self.components)

    @property
    def load(self) -> float:
        """Processors kept busy by all components whose demand is known."""
        return sum(demand.load for demand in self.components if demand.known)


def demands(context: ScalingContext) -> Demands:
    """The demand of every component that runs or was measured."""
    newest = context.newest
    if newest is None:
        return Demands((), ("any measurement",))
    source = _with_work(context)
    measured = {component.name: component for component in (source or newest).components}
    names = component_names(context)
    services = last_service_times_s(context.window)
    flow = _flow(context, newest, source)
    found = tuple(
        _demand(name, measured.get(name), services.get(name, math.nan), context, flow)
        for name in names
    )
    return Demands(found, all_gaps(context, [d.name for d in found if not d.known]))


def component_names(context: ScalingContext) -> tuple[str, ...]:
    """Components that run or were measured, in order."""
    source = _with_work(context) or context.window[-1]
    return tuple(sorted({*source.columns.names, *context.current.parallelism}))


def all_gaps(context: ScalingContext, unknown: Iterable[str]) -> tuple[str, ...]:
    """What was not measured and matters, these components' demand included."""
    newest = context.window[-1]
    gaps = [*gaps_of(newest), *(f"demand of {name}" for name in unknown)]
    if context.sharing == "time" and _with_work(context) is not newest:
        gaps.append("a finished batch")
    return tuple(gaps)


@dataclass(frozen=True)
class _Flow:
    """What brings a component's measured rate to the present: new rows and backlog a second."""

    fresh: float
    behind: float


def _flow(context: ScalingContext, newest: Observation, source: Observation | None) -> _Flow:
    if context.sharing == "space" or source is None:
        return _Flow(1.0, 0.0)
    reference = source.arrival_rate_per_s
    if not reference > 0:
        return _Flow(1.0, 0.0)
    rate = newest.arrival_rate_per_s
    behind = excess_rows(context, newest) / context.limits.max_latency_s
    return _Flow(rate / reference, behind / reference)


def _demand(
    name: str,
    measured: ComponentObservation | None,
    service_time_s: float,
    context: ScalingContext,
    flow: _Flow,
) -> Demand:
    current = context.current.parallelism.get(name)
    if measured is None:
        rate = 0.0 if context.sharing == "time" and idle(context.window[-1]) else math.nan
        return Demand(name, rate, 0.0, math.nan, current or 1)
    behind = measured.arrival_rate_per_s * flow.behind
    if context.sharing == "space":
        behind = measured.backlog_rows / context.limits.max_latency_s
    return Demand(
        name=name,
        arrival_rate_per_s=measured.arrival_rate_per_s * flow.fresh,
        backlog_rate_per_s=behind,
        service_time_s=service_time_s,
        parallelism=current if current is not None else max(1, measured.parallelism),
        arrival_scv=_positive(measured.arrival_scv),
        service_scv=_positive(measured.service_scv),
    )


def last_service_times_s(window: tuple[Observation, ...]) -> dict[str, float]:
    """The newest known service times; they outlive a period in which nothing arrived."""
    found: dict[str, float] = {}
    for observation in window:
        for component in observation.components:
            if component.service_time_s >= 0:
                found[component.name] = component.service_time_s
    return found


def _with_work(context: ScalingContext) -> Observation | None:
    """The newest observation whose component rates mean something.

    A batch longer than a period leaves periods in which no batch ended: their component rates
    say nothing while rows are waiting, so an older period speaks for them.
    """
    newest = context.window[-1]
    if context.sharing == "space" or idle(newest):
        return newest
    for observation in reversed(context.window):
        if has_rates(observation):
            return observation
    return None


def has_rates(observation: Observation) -> bool:
    """Whether its component rates mean something: a batch ended, and all were measured."""
    ended = observation.batches is None or observation.batches.count > 0
    rates = observation.columns.table[ARRIVALS]
    offered = observation.arrival_rate_per_s > 0
    return ended and offered and len(rates) > 0 and bool(np.isfinite(rates).all())


def gaps_of(observation: Observation) -> list[str]:
    """What was not measured and says something about load."""
    return [gap for gap in observation.missing if not gap.startswith(HARMLESS_GAPS)]


def idle(observation: Observation) -> bool:
    """Whether nothing comes and nothing waits."""
    return observation.arrival_rate_per_s == 0 and observation.backlog_rows == 0


def excess_rows(context: ScalingContext, observation: Observation) -> float:
    """Backlog of a query beyond what is normally under way.

    Batches run back to back hold up to two batches of rows (one that runs, one that gathers):
    these are not behind. More than one bound's worth is, whatever the batches' size.
    """
    rate, bound = observation.arrival_rate_per_s, context.limits.max_latency_s
    if context.sharing == "space" or not observation.backlog_rows > 0:
        return 0.0
    batches = observation.batches
    rows = batches.mean_rows if batches is not None and batches.count else 0.0
    under_way = min(2.0 * rows, rate * bound) if rate >= 0 else 0.0
    return max(0.0, observation.backlog_rows - under_way)


def _positive(scv: float) -> float:
    return scv if scv >= 0 else 1.0
