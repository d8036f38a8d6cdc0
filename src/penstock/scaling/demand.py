"""What each component is asked to do, read from the window: arrivals, backlog, service time.

A row that waits longer than the bound allows is demand too: backlog beyond what is normally
under way is to be worked off within the latency bound, so it adds backlog / bound rows a second.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

from penstock.model.observation import ComponentObservation, Observation
from penstock.scaling.policy import ScalingContext

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
    names = sorted({*measured, *context.current.parallelism})
    factor = _offered_over_served(newest, source) if context.sharing == "time" else 1.0
    share = _excess_share(context, newest)
    found = tuple(_demand(name, measured.get(name), context, factor, share) for name in names)
    gaps = [gap for gap in newest.missing if not gap.startswith(HARMLESS_GAPS)]
    gaps += [f"demand of {demand.name}" for demand in found if not demand.known]
    if context.sharing == "time" and source is not newest:
        gaps.append("a finished batch")
    return Demands(found, tuple(gaps))


def _demand(
    name: str,
    measured: ComponentObservation | None,
    context: ScalingContext,
    factor: float,
    excess_share: float,
) -> Demand:
    current = context.current.parallelism.get(name)
    if measured is None:
        rate = 0.0 if context.sharing == "time" and _idle(context.window[-1]) else math.nan
        return Demand(name, rate, 0.0, math.nan, current or 1)
    arrivals = measured.arrival_rate_per_s * factor
    behind = arrivals * excess_share
    if context.sharing == "space":
        behind += measured.backlog_rows / context.limits.max_latency_s
    return Demand(
        name=name,
        arrival_rate_per_s=arrivals,
        backlog_rate_per_s=behind,
        service_time_s=last_service_time_s(context.window, name),
        parallelism=current if current is not None else max(1, measured.parallelism),
        arrival_scv=_positive(measured.arrival_scv),
        service_scv=_positive(measured.service_scv),
    )


def last_service_time_s(window: tuple[Observation, ...], name: str) -> float:
    """The newest known service time; it outlives a period in which nothing arrived."""
    for observation in reversed(window):
        for component in observation.components:
            if component.name == name and component.service_time_s >= 0:
                return component.service_time_s
    return math.nan


def _with_work(context: ScalingContext) -> Observation | None:
    """The newest observation whose component rates mean something.

    A batch longer than a period leaves periods in which no batch ended: their component rates
    are zero while rows are waiting, so an older period speaks for them.
    """
    newest = context.window[-1]
    if context.sharing == "space" or newest.batches is None or _idle(newest):
        return newest
    for observation in reversed(context.window):
        if observation.batches is not None and observation.batches.count > 0:
            return observation
    return None


def _idle(observation: Observation) -> bool:
    return observation.arrival_rate_per_s == 0 and observation.backlog_rows == 0


def _served_rate_per_s(observation: Observation) -> float:
    batches = observation.batches
    if batches is None or not observation.period_s > 0:
        return math.nan
    return batches.count * batches.mean_rows / observation.period_s


def _offered_over_served(newest: Observation, source: Observation | None) -> float:
    """Component rates are of rows served; this brings them to the rows offered."""
    served = _served_rate_per_s(source) if source is not None else math.nan
    factor = newest.arrival_rate_per_s / served if served > 0 else 1.0
    return factor if math.isfinite(factor) else 1.0


def _excess_share(context: ScalingContext, newest: Observation) -> float:
    """Backlog beyond what is under way, as a share of the arrivals of one latency bound.

    Batches run back to back hold 1.5 batches of rows on average (one that runs, half of one that
    gathers): these are not behind. More than one bound's worth is, whatever the batches' size.
    """
    rate, bound = newest.arrival_rate_per_s, context.limits.max_latency_s
    if context.sharing == "space" or not rate > 0 or not newest.backlog_rows > 0:
        return 0.0
    rows = newest.batches.mean_rows if newest.batches and newest.batches.count else 0.0
    under_way = min(1.5 * rows, rate * bound)
    return max(0.0, newest.backlog_rows - under_way) / (rate * bound)


def _positive(scv: float) -> float:
    return scv if scv >= 0 else 1.0
