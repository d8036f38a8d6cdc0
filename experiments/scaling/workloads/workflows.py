"""The workflows of Kotto-Kombi 2018, chapters 5 to 7, as operators whose processors are their own.

Degrees, latencies and selectivities are those of the text where it gives them; the others are
chosen here, once (docs/reproduce.md).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import numpy as np

from penstock.scaling.models.traffic import arrival_rates
from penstock.sim.scenario import OperatorSpec, Upstream
from penstock.sim.service import ServiceTime

Dispatch = Literal["shared", "round-robin"]

SOURCE = "source"
VALUES_S = np.arange(1, 10) * 0.010  # what a value costs in a sensitive operator
ZIPF_EXPONENT = 1.5


@dataclass(frozen=True)
class Workflow:
    """Operators with one processor each, what an expert would give, and what a task reserves."""

    name: str
    operators: tuple[OperatorSpec, ...]
    expert: Mapping[str, int]
    cpu_points: Mapping[str, float]  # reserved by one task

    def degrees(self, start: str) -> dict[str, int]:
        """The tasks that "ConfMin" or "ConfExpt" begins with."""
        return self.minimal if start == "ConfMin" else dict(self.expert)

    @property
    def minimal(self) -> dict[str, int]:
        """ConfMin: one task each."""
        return {operator.name: 1 for operator in self.operators}

    def started(self, degrees: Mapping[str, int]) -> tuple[OperatorSpec, ...]:
        """The operators with these degrees at first."""
        return tuple(replace(one, processors=degrees[one.name]) for one in self.operators)

    @cached_property
    def visits(self) -> dict[str, float]:
        """Rows that reach each operator for each row of the source."""
        specs = {one.name: one for one in self.operators}
        external = dict.fromkeys(specs, 0.0)
        ratios = dict[tuple[str, str], float]()
        for one in self.operators:
            for upstream in one.upstreams:
                if upstream.name == SOURCE:
                    external[one.name] += upstream.share
                else:
                    emitted = specs[upstream.name].selectivity
                    ratios[upstream.name, one.name] = emitted * upstream.share
        return arrival_rates(list(specs), external, ratios)

    @property
    def results_per_row(self) -> float:
        """Results that derive from a row: what the operators nobody reads emit."""
        read = {upstream.name for one in self.operators for upstream in one.upstreams}
        last = [one for one in self.operators if one.name not in read]
        return sum(self.visits[one.name] * one.selectivity for one in last)

    def load(self, rate_per_s: float) -> dict[str, float]:
        """Processors each operator keeps busy at a rate of the source."""
        return {
            one.name: rate_per_s * self.visits[one.name] * one.service.mean_s
            for one in self.operators
        }


def heterogeneous() -> Workflow:
    """Chapter 5 s.6.1: two slow operators, before and behind a fast filter."""
    return _workflow(
        "heterogeneous",
        (
            _step("FastNonFilter", SOURCE, 0.001),
            _step("SlowNonFilterMid", "FastNonFilter", 0.100),
            _step("FastFilter", "SlowNonFilterMid", 0.001, 0.1),
            _step("SlowNonFilterEnd", "FastFilter", 0.100),
        ),
        {},
    )


def linear() -> Workflow:
    """Chapter 7 s.3: two intermediate operators and a slow sink (Table 2)."""
    steps = (
        _step("first", SOURCE, 0.002),
        _step("second", "first", 0.002),
        _step("sink", "second", 0.080),
    )
    return _workflow("linear", steps, {"sink": 8}, {"sink": 80.0})


def diamond() -> Workflow:
    """An intermediate operator, two behind it that share its rows, and a slow sink (Table 2)."""
    steps = (
        _step("first", SOURCE, 0.002),
        _step("left", ("first", 0.5), 0.002),
        _step("right", ("first", 0.5), 0.002),
        _step("sink", ("left", "right"), 0.080),
    )
    return _workflow("diamond", steps, {"sink": 8}, {"sink": 80.0})


def star() -> Workflow:
    """An intermediate hub whose rows three slow sinks share (Table 3)."""
    sinks = tuple(_step(name, ("hub", 1 / 3), 0.240) for name in ("one", "two", "three"))
    names = [sink.name for sink in sinks]
    return _workflow(
        "star", (_step("hub", SOURCE, 0.002), *sinks), dict.fromkeys(names, 8),
        dict.fromkeys(names, 30.0),
    )  # fmt: skip


def advertising() -> Workflow:
    """Chapter 7 s.3.3: a filter in front of two branches that end in slow processors.

    ConfExpt is what someone gives who looks at latencies alone: eight tasks to each slow operator.
    """
    steps = (
        _step("deserialize", SOURCE, 0.002),
        _step("event_filter", "deserialize", 0.002, 0.1),
        _step("ip_projection", "event_filter", 0.002),
        _step("ad_projection", "event_filter", 0.002),
        _step("campaign_join", "ad_projection", 0.010),
        _step("ip_processor", "ip_projection", 0.080),
        _step("campaign_processor", "campaign_join", 0.080),
    )
    slow = ("ip_processor", "campaign_processor")
    return _workflow("advertising", steps, dict.fromkeys(slow, 8), dict.fromkeys(slow, 80.0))


def simple(service: ServiceTime, dispatch: Dispatch = "shared") -> Workflow:
    """Chapter 7 s.4: one bolt, and one that ends the computation.

    One queue for all tasks sends each element to the task that is free first: what OSG does when it
    knows the costs of values. Shuffle grouping is "round-robin".
    """
    bolt = OperatorSpec("bolt", (Upstream(SOURCE),), service, dispatch=dispatch)
    return _workflow("simple", (bolt, _step("finalize", "bolt", 0.001)), {})


def complex_sensitive(service: ServiceTime) -> Workflow:
    """Chapter 6 s.4.2: a dispatcher that filters, a branch by city, one by age, a persister."""
    city = OperatorSpec("CityNormalizer", (Upstream("CategoryDispatcher"),), service)
    steps = (
        _step("CategoryDispatcher", SOURCE, 0.002, 0.8),
        city,
        _step("CityAnalyzer", "CityNormalizer", 0.005, 0.5),
        _step("AgeNormalizer", "CategoryDispatcher", 0.005),
        _step("AgeAnalyzer", "AgeNormalizer", 0.005, 0.5),
        _step("Persister", ("CityAnalyzer", "AgeAnalyzer"), 0.002),
    )
    return _workflow("complex", steps, {})


def insensitive() -> ServiceTime:
    """As long for every value: the mean of a uniform draw of the sensitive operator's values."""
    return ServiceTime("exponential", float(VALUES_S.mean()))


def sensitive(exponent: float) -> ServiceTime:
    """Time that depends on the value, 10 to 90 ms; the costly ones are rare by Zipf's law.

    Exponent 0 is uniform. The gamma law of the same mean and variance stands for the nine values.
    """
    weights = np.arange(1, 10) ** -exponent
    weights /= weights.sum()
    mean_s = float(weights @ VALUES_S)
    variance = float(weights @ VALUES_S**2) - mean_s**2
    return ServiceTime("gamma", mean_s, variance / mean_s**2)


def _step(
    name: str,
    upstreams: str | tuple[str, float] | Sequence[str],
    mean_s: float,
    selectivity: float = 1.0,
) -> OperatorSpec:
    if isinstance(upstreams, str):
        ups: tuple[Upstream, ...] = (Upstream(upstreams),)
    elif isinstance(upstreams[1], float):
        ups = (Upstream(str(upstreams[0]), upstreams[1]),)
    else:
        ups = tuple(Upstream(str(one)) for one in upstreams)
    return OperatorSpec(name, ups, ServiceTime("exponential", mean_s), selectivity)


def _workflow(
    name: str,
    operators: Sequence[OperatorSpec],
    expert: Mapping[str, int],
    cpu_points: Mapping[str, float] | None = None,
) -> Workflow:
    points = {one.name: (cpu_points or {}).get(one.name, 20.0) for one in operators}
    return Workflow(
        name, tuple(operators), {one.name: expert.get(one.name, 1) for one in operators}, points
    )
