"""What was measured in one period. Missing measurements are None or NaN, never zero."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from penstock.model.decision import RoomDecision

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class OperatorObservation:
    """Rows that crossed an operator's edges."""

    name: str
    arrival_rate_per_s: float
    emission_rate_per_s: float

    @property
    def selectivity(self) -> float:
        """Rows out for each row in; NaN when nothing came in."""
        if not self.arrival_rate_per_s > 0:
            return float("nan")
        return self.emission_rate_per_s / self.arrival_rate_per_s


@dataclass(frozen=True)
class KeyGroups:
    """The key groups of one component, as columns in order of their partition number."""

    load_s: Floats  # processor-seconds used in the period
    state_bytes: Floats  # NaN where unknown
    node: NDArray[np.str_]  # where the group's task last ran; "" where unknown

    def __post_init__(self) -> None:
        if not len(self.load_s) == len(self.state_bytes) == len(self.node):
            raise ValueError("the columns of KeyGroups must be of one length")


@dataclass(frozen=True)
class GroupTraffic:
    """Bytes from the key groups of a component to those of the next, one entry for each pair."""

    source: str
    target: str
    from_group: Ints
    to_group: Ints
    size_bytes: Floats


@dataclass(frozen=True)
class ComponentObservation:
    """The work of one component.

    `arrival_rate_per_s` is offered: the rows that come to it a second when nothing upstream waits.
    Run together that is the rate of the sources times its rows for each of theirs, whatever the
    batches of the period took; run apart, what reached its queue. `service_time_s` is
    processor-seconds for each row that arrives; NaN when nothing arrived.
    """

    name: str
    operators: tuple[str, ...]
    arrival_rate_per_s: float
    service_time_s: float
    parallelism: int
    busy_s: float
    backlog_rows: float = 0.0
    arrival_scv: float = 1.0
    service_scv: float = 1.0
    key_groups: KeyGroups | None = None
    tasks: int = 0  # of its newest batch; 0 where work is not divided into tasks

    @property
    def service_rate_per_s(self) -> float:
        """Rows one processor can serve in a second."""
        return 1.0 / self.service_time_s if self.service_time_s > 0 else float("nan")


@dataclass(frozen=True)
class NodeObservation:
    """One executor."""

    name: str
    slots: int
    busy_s: float
    draining: bool = False
    state_memory_bytes: float | None = None  # for state that is kept in memory; None: no limit


@dataclass(frozen=True)
class LatencyObservation:
    """Latency of the results of a period, from the ledger."""

    count: int
    mean_s: float
    p95_s: float
    max_s: float
    in_time_share: float  # of results within the topology's bound


@dataclass(frozen=True)
class BatchObservation:
    """The micro-batches that ended in a period (components run together)."""

    count: int
    mean_duration_s: float
    mean_overhead_s: float  # duration less the work divided by the processors that shared it
    mean_rows: float


@dataclass(frozen=True)
class RouteObservation:
    """The tasks that a source's rows were routed to in the newest batch, by their number."""

    source: str
    load_s: Floats  # run time of each task
    rows: Ints  # that each task was given
    table: str = ""  # the version of the table they were routed by; "" where unknown

    @property
    def load_ratio(self) -> float:
        """Standard deviation over mean of the load: 0 is even; NaN without load."""
        mean_s = float(self.load_s.mean()) if len(self.load_s) else 0.0
        return float(self.load_s.std()) / mean_s if mean_s > 0 else float("nan")


@dataclass(frozen=True)
class LaneObservation:
    """One lane of a source: the streams it reads, and what of them waits."""

    name: str
    streams: int
    queue_rows: int
    rate_per_s: float


@dataclass(frozen=True)
class AdmissionRecord:
    """One decision of a source over its lanes, with its reasons."""

    number: int
    at_s: float
    strategy: str
    streams: int
    lanes_before: int
    lanes_after: int
    redirected: int
    opened: int
    retired: int
    lower_bound: int
    rate_per_s: float
    reasons: tuple[str, ...]
    infeasible: str | None = None
    source: str = ""


@dataclass(frozen=True)
class SourceObservation:
    """A source of many streams, as it reports itself; decisions are those of the period."""

    source: str
    live: int
    leaving: int
    suspended: int
    waiting_rows: int
    malformed_rows: int
    redirected: int  # streams that changed lanes since its runner began
    lanes: tuple[LaneObservation, ...] = ()
    decisions: tuple[AdmissionRecord, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class StateObservation:
    """State of an attached query, whose parts are not measured as components of their own."""

    name: str
    key_groups: KeyGroups


@dataclass(frozen=True)
class Observation:
    """Everything measured in the period that ended at `at_s`."""

    at_s: float
    period_s: float
    arrival_rate_per_s: float  # offered by the sources, admitted or not
    backlog_rows: float  # arrived and not yet in a committed batch
    operators: tuple[OperatorObservation, ...] = ()
    components: tuple[ComponentObservation, ...] = ()
    nodes: tuple[NodeObservation, ...] = ()
    latency: LatencyObservation | None = None
    batches: BatchObservation | None = None
    routes: tuple[RouteObservation, ...] = ()
    sources: tuple[SourceObservation, ...] = ()  # those of many streams
    missing: tuple[str, ...] = field(default=())  # names of what could not be measured
    traffic: tuple[GroupTraffic, ...] = ()  # of the newest batch; not kept in the history
    state: tuple[StateObservation, ...] = ()  # beside that of components
    decided: tuple[RoomDecision, ...] = ()  # since the observation before; kept as decisions

    @property
    def key_groups(self) -> dict[str, KeyGroups]:
        """All key groups that were seen, by the name of what holds them."""
        held = {one.name: one.key_groups for one in self.components if one.key_groups is not None}
        return held | {one.name: one.key_groups for one in self.state}

    @property
    def offered_load(self) -> float:
        """Processors that what arrives keeps busy; NaN when some component's is not known."""
        return sum(
            component.arrival_rate_per_s * component.service_time_s
            for component in self.components
            if component.arrival_rate_per_s != 0
        )

    @property
    def processors(self) -> int:
        """Slots of the nodes that are not draining."""
        return sum(node.slots for node in self.nodes if not node.draining)
