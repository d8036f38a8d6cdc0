"""What was measured in one period. Missing measurements are None or NaN, never zero."""

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from penstock.model.component_columns import ComponentColumns
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
    """Bytes from the key groups of a component to those of the next, one entry for each pair.

    `remote_byte_s` is how long a task waits for a byte from another node; NaN where nothing shows.
    """

    source: str
    target: str
    from_group: Ints
    to_group: Ints
    size_bytes: Floats
    remote_byte_s: float = float("nan")


@dataclass(frozen=True)
class TaskCpu:
    """The CPU that a task is on: the share it uses, and those of the tasks beside it."""

    used: float
    others_used: tuple[float, ...] = ()


@dataclass(frozen=True)
class ComponentObservation:
    """The work of one component.

    `arrival_rate_per_s` is offered: the rows that come to it a second when nothing upstream waits.
    Run together that is the rate of the sources times its rows for each of theirs, whatever the
    batches of the period took; run apart, what reached its queue. `service_time_s` is
    processor-seconds for each row that arrives; NaN when nothing arrived. `served_rate_per_s` is
    rows that it worked through; NaN where they are not counted.
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
    served_rate_per_s: float = float("nan")
    cpu: tuple[TaskCpu, ...] = ()  # of its tasks, one of each node; not kept in the history
    reserved_cpu: float = float("nan")  # share of a CPU declared for each task; NaN: none is
    batch_s: float = float("nan")  # of its batches, where it has its own; not kept in the history
    batch_rows: float = float("nan")  # not kept in the history either
    reserved_memory_bytes: float = float("nan")  # declared for each task's state; NaN: none is

    @property
    def service_rate_per_s(self) -> float:
        """Rows one processor can serve in a second."""
        return 1.0 / self.service_time_s if self.service_time_s > 0 else float("nan")


@dataclass(frozen=True)
class Flows:
    """Rows a second that components sent each other, counted edge by edge; upstream first."""

    edges: tuple[tuple[str, str], ...] = ()
    rates_per_s: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        if len(self.edges) != len(self.rates_per_s):
            raise ValueError("Flows must have one rate for each edge")


@dataclass(frozen=True)
class NodeObservation:
    """One executor."""

    name: str
    slots: int
    busy_s: float
    draining: bool = False
    state_memory_bytes: float | None = None  # for state that is kept in memory; None: no limit
    gc_s: float | None = None  # of `busy_s` that garbage collection took; None: not measured


@dataclass(frozen=True)
class LatencyObservation:
    """Latency of the results of a period, from the ledger."""

    count: int
    mean_s: float
    p95_s: float
    max_s: float
    in_time_share: float  # of results within the topology's bound
    share_s: float = float("nan")  # that the promised share of them kept; NaN: not known


@dataclass(frozen=True)
class SinkObservation:
    """Latency of the results at one of several sinks, by its own bound."""

    name: str
    max_latency_s: float
    latency: LatencyObservation


@dataclass(frozen=True)
class BatchObservation:
    """The micro-batches that ended in a period (components run together)."""

    count: int
    mean_duration_s: float
    mean_overhead_s: float  # duration less the work divided by the processors that shared it
    mean_rows: float


@dataclass(frozen=True)
class Shuffles:
    """What tasks sent each other: means of a batch."""

    rows: float
    size_bytes: float


@dataclass(frozen=True)
class StageWork:
    """The tasks of one stage in a batch; each branch of a union at its end is one of its own.

    Times are those of all its tasks.
    """

    component: str
    tasks: int
    rows: int  # that they read from shuffles
    task_s: float  # from launch to end
    run_s: float  # of it, in executors
    state_s: float = 0.0  # of that, on updates, removals and commits; those of several may overlap


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
    """One lane of a source: the streams it reads, what of them waits, and what it is reading."""

    name: str
    streams: int
    queue_rows: int
    rate_per_s: float
    in_flight_rows: int = 0  # of the newest batch


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
    rate_per_s: float  # expected of all streams, by forecast and meta-data
    reasons: tuple[str, ...]
    infeasible: str | None = None
    source: str = ""
    horizon_s: float = 0.0  # how far ahead `rate_per_s` is expected


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
    # What its last decision expects of all its streams, by forecast and meta-data, and when it was
    # expected: within so many seconds. None before it has decided.
    foreseen_rate_per_s: float | None = None
    foreseen_horizon_s: float | None = None

    @property
    def rate_per_s(self) -> float:
        """Rows a second that came to its streams in its last period."""
        return sum(lane.rate_per_s for lane in self.lanes)


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
    flows: Flows = Flows()  # where they are counted; not kept in the history
    shuffles: Shuffles | None = None  # not kept in the history either
    stages: tuple[StageWork, ...] = ()  # of the newest batch; not kept in the history either
    sinks: tuple[SinkObservation, ...] = ()  # where there are several
    foreseen: bool = False  # rates are those expected soon; all else is what was measured
    # How long before `at_s` the time ended that the rate is of: a batch shows it when it is over.
    rate_age_s: float = 0.0
    # Whether `nodes` are a part of a cluster on which others work too.
    part_of_cluster: bool = False

    @cached_property
    def columns(self) -> ComponentColumns:
        """Its components as columns; made once, as a window is read in every period."""
        return ComponentColumns(self.components)

    @property
    def foreseen_rate_per_s(self) -> float:
        """What all sources will bring, as far as sources of many streams foresee it.

        Other sources count with what they bring now; NaN where nothing is foreseen.
        """
        known = [one for one in self.sources if one.foreseen_rate_per_s is not None]
        if not known:
            return float("nan")
        others = self.arrival_rate_per_s - sum(one.rate_per_s for one in known)
        return max(others, 0.0) + sum(one.foreseen_rate_per_s or 0.0 for one in known)

    @property
    def key_groups(self) -> dict[str, KeyGroups]:
        """All key groups that were seen, by the name of what holds them."""
        held = {one.name: one.key_groups for one in self.components if one.key_groups is not None}
        return held | {one.name: one.key_groups for one in self.state}

    @cached_property
    def offered_load(self) -> float:
        """Processors that what arrives keeps busy; NaN when some component's is not known."""
        return sum(
            component.arrival_rate_per_s * component.service_time_s
            for component in self.components
            if component.arrival_rate_per_s != 0
        )

    @cached_property
    def processors(self) -> int:
        """Slots of the nodes that are not draining."""
        return sum(node.slots for node in self.nodes if not node.draining)
