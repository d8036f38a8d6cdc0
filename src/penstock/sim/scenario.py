"""A scenario: what is simulated, as frozen dataclasses that refuse what cannot run."""

import math
from bisect import bisect_right
from dataclasses import dataclass, field, replace
from typing import Literal

from penstock.errors import InvalidInput
from penstock.model.decision import Limits
from penstock.sim.service import ServiceTime
from penstock.workloads.profiles import RateProfile


@dataclass(frozen=True)
class SourceSpec:
    """An input whose rate follows a profile; Poisson arrivals, or evenly spaced ones."""

    name: str
    profile: RateProfile
    arrivals: Literal["poisson", "regular"] = "poisson"
    earlier: RateProfile | None = None  # what an earlier run saw, until this one begins

    def __post_init__(self) -> None:
        if self.arrivals not in ("poisson", "regular"):
            raise InvalidInput(
                f"source {self.name!r}: arrivals is {self.arrivals!r}; allowed: poisson, regular."
            )

    def scaled(self, factor: float) -> "SourceSpec":
        """The same with so many times the rows, now and earlier."""
        earlier = None if self.earlier is None else self.earlier.scaled(factor)
        return replace(self, profile=self.profile.scaled(factor), earlier=earlier)


@dataclass(frozen=True)
class Upstream:
    """Where rows come from, and the share of them that comes.

    Edges of share 1 each carry every row; edges of a smaller share divide the rows among them.
    """

    name: str
    share: float = 1.0


@dataclass(frozen=True)
class OperatorSpec:
    """A step: time per row, rows out for each row in, and where its rows come from.

    `processors` is the first parallelism when processors are shared in space. `component` names
    the component it is fused into when they are shared in time; alone when empty. `sink` makes its
    rows results even if other operators read them too. `dispatch` says how rows find a server when
    processors are shared in space: "shared" is one queue for all servers, which is as good as
    knowing what each row costs; "round-robin" deals them out to a queue for each server. `cheaper`
    is the part of its time that its cheaper form takes; 1 when it has none.
    """

    name: str
    upstreams: tuple[Upstream, ...]
    service: ServiceTime
    selectivity: float = 1.0
    processors: int = 1
    component: str = ""
    sink: bool = False
    dispatch: Literal["shared", "round-robin"] = "shared"
    cheaper: float = 1.0
    forms: tuple[
        tuple[str, float], ...
    ] = ()  # others that answer alike, and their part of its time

    def __post_init__(self) -> None:
        what = f"operator {self.name!r}"
        if self.dispatch not in ("shared", "round-robin"):
            raise InvalidInput(
                f"{what}: dispatch is {self.dispatch!r}; allowed: shared, round-robin."
            )
        if not self.upstreams:
            raise InvalidInput(f"{what}: from is empty; name at least one source or operator.")
        if not (math.isfinite(self.selectivity) and self.selectivity >= 0):
            raise InvalidInput(
                f"{what}: selectivity is {self.selectivity!r}; it must be a finite number of at "
                "least 0."
            )
        if not 0 < self.cheaper <= 1:
            raise InvalidInput(
                f"{what}: cheaper is {self.cheaper!r}; it must be above 0 and at most 1."
            )
        for form, part in self.forms:
            if not (form.isidentifier() and 0 < part <= 1000):
                raise InvalidInput(
                    f"{what}: forms has {form!r} = {part!r}; give names and parts above 0."
                )
        if self.processors < 1:
            raise InvalidInput(f"{what}: processors is {self.processors}; it must be at least 1.")
        names = [upstream.name for upstream in self.upstreams]
        for upstream in self.upstreams:
            if not 0 < upstream.share <= 1:
                raise InvalidInput(
                    f"{what}: from {upstream.name!r} has share {upstream.share!r}; it must be "
                    "above 0 and at most 1."
                )
            if names.count(upstream.name) > 1:
                raise InvalidInput(f"{what}: from names {upstream.name!r} more than once.")


LEAST_OVERHEAD_S = 1e-3  # without any, a simulated batch would never end


@dataclass(frozen=True)
class BatchCost:
    """The fixed cost of a micro-batch, O(K), and the trigger interval (0: back to back).

    O(K) is fixed_s + per_processor_s * K, or, where a table of (K, seconds) is given, linear
    between its entries and flat outside them. Where a `course` of (second, factor) is given, O(K)
    is multiplied by the factor from that second on: a machine with other work on it has such hours.
    """

    fixed_s: float = 0.25
    per_processor_s: float = 0.0
    table: tuple[tuple[int, float], ...] = ()
    trigger_s: float = 0.0
    course: tuple[tuple[float, float], ...] = ()

    def __post_init__(self) -> None:
        for name in ("fixed_s", "per_processor_s", "trigger_s"):
            value = getattr(self, name)
            if not (math.isfinite(value) and value >= 0):
                raise InvalidInput(f"batch.{name} is {value!r}; it must be finite and at least 0.")
        numbers = [processors for processors, _ in self.table]
        if numbers != sorted(set(numbers)) or any(number < 1 for number in numbers):
            raise InvalidInput("batch.table must list rising numbers of processors from 1 on.")
        if any(not (math.isfinite(cost) and cost >= 0) for _, cost in self.table):
            raise InvalidInput("batch.table must hold finite costs of at least 0 seconds.")
        if not self.table and not self.fixed_s + self.per_processor_s > 0:
            raise InvalidInput("batch.fixed_s is 0; a batch without fixed cost would never end.")
        if self.table and min(cost for _, cost in self.table) <= 0:
            raise InvalidInput("batch.table holds a cost of 0; such batches would never end.")

    def overhead_at(self, at_s: float, processors: int) -> float:
        """O(K) of a batch that begins at a moment."""
        begun = bisect_right(self.course, at_s, key=lambda entry: entry[0])
        factor = self.course[begun - 1][1] if begun else 1.0
        return max(LEAST_OVERHEAD_S, factor * self.overhead_s(processors))

    def overhead_s(self, processors: int) -> float:
        """O(K)."""
        if not self.table:
            return self.fixed_s + self.per_processor_s * processors
        lower = [entry for entry in self.table if entry[0] <= processors]
        upper = [entry for entry in self.table if entry[0] >= processors]
        if not lower or not upper:
            return (lower[-1] if lower else upper[0])[1]
        (k0, o0), (k1, o1) = lower[-1], upper[0]
        return o0 if k1 == k0 else o0 + (o1 - o0) * (processors - k0) / (k1 - k0)


@dataclass(frozen=True)
class ClusterSpec:
    """Executors: how many at first, least and at most, their slots, how long one takes to start.

    `pause_s` is what their coming costs those that work. Shared in space, an operator starts no row
    for so long after its processors changed in number, as engines move queues and tasks. Shared in
    time, a batch takes so much longer that begins while executors start, or as long again after
    that, while their first tasks are cold: on few cores a start takes them from the batches.
    """

    executors: int = 1
    min_executors: int = 1
    max_executors: int = 4
    slots: int = 1
    startup_s: float = 0.0
    pause_s: float = 0.0
    key_groups: int = 0  # of each component; 0 when they play no part
    key_skew: float = 0.0  # their work falls with their rank to this power
    migration_s: float = 0.0  # by which moving one delays the next batch
    cores: int = 0  # that all slots share, for processors shared in space; 0: one for each slot

    def __post_init__(self) -> None:
        if not (math.isfinite(self.migration_s) and self.migration_s >= 0):
            raise InvalidInput(
                f"cluster.migration is {self.migration_s!r}; it must be at least 0 s."
            )
        if self.key_groups < 0 or not 0 <= self.key_skew <= 10:
            raise InvalidInput(
                f"cluster.key_groups is {self.key_groups} and key_skew {self.key_skew:g}; at least "
                "0, and from 0 to 10, are allowed."
            )
        if self.cores < 0:
            raise InvalidInput(f"cluster.cores is {self.cores}; it must be at least 0.")
        if self.slots < 1:
            raise InvalidInput(f"cluster.slots is {self.slots}; it must be at least 1.")
        if not 1 <= self.min_executors <= self.max_executors:
            raise InvalidInput(
                f"cluster.min_executors is {self.min_executors} and max_executors "
                f"{self.max_executors}; they must rise from at least 1."
            )
        if not self.min_executors <= self.executors <= self.max_executors:
            raise InvalidInput(
                f"cluster.executors is {self.executors}; it must be between min_executors "
                f"({self.min_executors}) and max_executors ({self.max_executors})."
            )
        if not (math.isfinite(self.startup_s) and self.startup_s >= 0):
            raise InvalidInput(f"cluster.startup is {self.startup_s!r}; it must be at least 0 s.")
        if not (math.isfinite(self.pause_s) and self.pause_s >= 0):
            raise InvalidInput(f"cluster.pause is {self.pause_s!r}; it must be at least 0 s.")


@dataclass(frozen=True)
class Scenario:
    """All of a simulated run except the policy.

    A step with at most `jobs_per_step` rows is simulated row by row; with more, as that many jobs
    of several rows, so latencies are known to about a step.
    """

    name: str
    duration_s: float
    max_latency_s: float
    sources: tuple[SourceSpec, ...]
    operators: tuple[OperatorSpec, ...]
    cluster: ClusterSpec = field(default_factory=ClusterSpec)
    sharing: Literal["time", "space"] = "time"
    batch: BatchCost = field(default_factory=BatchCost)
    period_s: float = 5.0
    step_s: float = 0.1
    jobs_per_step: int = 8
    seed: int = 1
    share: float = 0.99  # of the results that must be within the bound
    weight: float = 1.0  # of its promise, where others are on the same cluster
    # Rates are those of the batches that are over, as of a query that Penstock did not build.
    rates_by_batch: bool = False
    day_s: float = 86_400.0  # of the load, where it is quicker than it was

    def __post_init__(self) -> None:
        for name in ("duration_s", "max_latency_s", "period_s", "step_s", "day_s"):
            value = getattr(self, name)
            if not (math.isfinite(value) and value > 0):
                raise InvalidInput(f"{name} is {value!r}; it must be a finite time above 0.")
        if self.step_s > self.period_s:
            raise InvalidInput(
                f"step_s is {self.step_s:g} and period_s {self.period_s:g}; a step must not be "
                "longer than a period."
            )
        if self.jobs_per_step < 1:
            raise InvalidInput(f"jobs_per_step is {self.jobs_per_step}; it must be at least 1.")
        if not 0 < self.share < 1:
            raise InvalidInput(f"share is {self.share!r}; it must be above 0 and below 1.")
        if not 0.001 <= self.weight <= 10_000:
            raise InvalidInput(f"weight is {self.weight!r}; it must be from 0.001 to 10000.")
        if self.seed < 0:
            raise InvalidInput(f"seed is {self.seed}; it must be at least 0.")
        if self.sharing not in ("time", "space"):
            raise InvalidInput(f"sharing is {self.sharing!r}; allowed: time, space.")
        if self.cluster.cores and self.sharing == "time":
            raise InvalidInput(
                f"cluster.cores is {self.cluster.cores}; slots share cores only with sharing = "
                "'space'."
            )
        least = self.cluster.min_executors * self.cluster.slots
        if self.sharing == "space" and least < len(self.operators):
            raise InvalidInput(
                f"cluster.min_executors gives {least} processors, but sharing in space needs one "
                f"for each of the {len(self.operators)} operators."
            )

    @property
    def variants(self) -> tuple[str, ...]:
        """Operators with a cheaper form; only batches can go over to it."""
        return tuple(o.name for o in self.operators if o.cheaper < 1 and self.sharing == "time")

    @property
    def forms(self) -> dict[str, tuple[str, ...]]:
        """Operators with equivalent forms, and how these are called; only batches change them."""
        shared = self.operators if self.sharing == "time" else ()
        return {o.name: tuple(name for name, _ in o.forms) for o in shared if o.forms}

    @property
    def edges(self) -> tuple[tuple[str, str], ...]:
        """Who feeds whom, upstream first."""
        return tuple((u.name, o.name) for o in self.operators for u in o.upstreams)

    @property
    def limits(self) -> Limits:
        """What a policy may ask for."""
        slots = self.cluster.slots
        return Limits(
            self.cluster.min_executors * slots,
            self.cluster.max_executors * slots,
            self.max_latency_s,
            self.share,
        )
