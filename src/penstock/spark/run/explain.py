"""What would run, without running it: `penstock run --explain`."""

import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

from pyspark.sql import SparkSession

from penstock.control.history.store import HistoryStore
from penstock.model.plan import Orders, TopologyPlan
from penstock.model.plan_document import Group
from penstock.model.topology import Topology
from penstock.spark.checkpoint.layout import Checkpoint
from penstock.spark.checkpoint.plan_agreement import read_again_since, recorded_plan
from penstock.spark.checkpoint.plan_record import PlanRecord, together_with
from penstock.spark.compile.apart import build_apart
from penstock.spark.compile.builder import BuiltQuery, BuiltTopology, build
from penstock.spark.compile.fused import relaxed
from penstock.spark.compile.inspection import Reading
from penstock.spark.handles import planned_shape
from penstock.spark.run.place import PlanName, build_session, read_plan_file
from penstock.spark.run.slow_loop import proposed

_ROUTED = "ShufflePartitionIdPassThrough"  # Spark's name for rows that say their partition


@dataclass(frozen=True)
class Explanation:
    """The plan of a topology, its output schemas, and what each source is shared by."""

    topology: str
    plan: TopologyPlan
    schemas: dict[str, str]
    shared: tuple[str, ...]
    routes: dict[str, str] = field(default_factory=dict)
    shuffles: dict[str, tuple[str, ...]] = field(default_factory=dict)  # of each query
    edges: tuple[tuple[str, str], ...] = ()
    notes: tuple[str, ...] = ()  # on orders, and on work that is done twice

    def lines(self) -> list[str]:
        """For a person."""
        lines = [f"topology {self.topology}: {len(self.plan.queries)} query(s)"]
        for query in self.plan.queries:
            lines.append(f"  query {query.name} ({query.output_mode}) -> {', '.join(query.sinks)}")
            for component in query.components:
                members = ", ".join(component.operators) or "(reads its source)"
                key = f" by ({', '.join(component.key)})" if component.key else ""
                lines.append(f"    component {component.name}{key}: {members}")
            shuffles = self.shuffles.get(query.name, ())
            lines.append(f"    {len(shuffles)} shuffle(s): {'; '.join(shuffles) or 'none'}")
        lines += [f"  shared by an exchange: {name}" for name in self.shared]
        lines += [f"  route of {name}: {route}" for name, route in self.routes.items()]
        lines += [f"  {name}: {schema}" for name, schema in self.schemas.items()]
        lines += [f"  note: {reason}" for reason in (*self.plan.reasons, *self.notes)]
        return lines


@dataclass(frozen=True)
class _Wanted:
    plan: TopologyPlan | tuple[Group, ...] | None
    orders: Orders = ()


def explain(
    topology: Topology, key_groups: int, log_file: Path | None = None, apart: bool = False,
    plan: PlanName = None, history: str | None = None, checkpoint: Path | None = None,
) -> Explanation:  # fmt: skip
    """Build a topology's queries on a local session and say what they are.

    What a checkpoint began with is kept, as a run that goes on with it would.
    """
    begun = None if checkpoint is None else Checkpoint(checkpoint)
    wanted = _wanted(plan, topology.name, history)
    if begun is not None and plan != "none":
        wanted = _going_on(wanted, recorded_plan(begun), apart)
    reading = Reading(time.time(), again=None if begun is None else read_again_since(begun))
    session = build_session(
        "penstock-explain", "local[1]", key_groups=key_groups, log_file=log_file
    )
    try:
        built = _built(topology, session, apart, wanted, reading)
        shared = {name for query in built.queries for name in query.sharing.shared}
        return Explanation(
            topology.name,
            built.plan,
            built.schemas,
            tuple(sorted(shared)),
            routes_in_words(topology, built.topology),
            {query.plan.name: _shuffles(query) for query in built.queries},
            built.topology.edges,
            (*built.notes, *built.repeats),
        )
    finally:
        session.stop()


def routes_in_words(declared: Topology, built: Topology) -> dict[str, str]:
    """Routes of sources, and which of them follow from the query."""
    given = {source.name: source.route for source in declared.sources}
    return {
        source.name: source.route.description()
        + (" (inferred from the query)" if source.route != given[source.name] else "")
        for source in built.sources
        if source.route is not None
    }


def _built(
    topology: Topology, session: SparkSession, apart: bool, wanted: _Wanted, reading: Reading
) -> BuiltTopology:
    if not apart:
        return build(topology, session, reading, wanted.plan, wanted.orders)
    with tempfile.TemporaryDirectory(prefix="penstock-explain-") as folder:
        return build_apart(
            topology, session, reading, Path(folder).joinpath, wanted=wanted.plan
        ).built


def _going_on(wanted: _Wanted, record: PlanRecord | None, apart: bool) -> _Wanted:
    """What a run takes up of a checkpoint, if it is not told otherwise."""
    if record is None:
        return wanted
    begun: TopologyPlan | tuple[Group, ...] | None = None
    if apart or record.fingerprints:
        begun = record.fused_groups() if apart else record.plan
    plan = begun if wanted.plan is None else wanted.plan
    return _Wanted(plan, together_with(wanted.orders, record.orders))


def _wanted(plan: PlanName, topology: str, history: str | None) -> _Wanted:
    if not isinstance(plan, str):
        return _Wanted(plan)
    if plan == "none":
        return _Wanted(())
    if plan == "auto":
        if history is None or not Path(history).exists():
            return _Wanted(())
        with HistoryStore(history, create=False) as store:
            found = proposed(store, topology)
        return _Wanted(found.groups or (), found.orders)
    return _Wanted(read_plan_file(Path(plan)))


def _shuffles(query: BuiltQuery) -> tuple[str, ...]:
    """The shuffles of a batch; an exchange that consumers share is one."""
    with relaxed(query.frame.sparkSession, query.shape is not None, query.row_by_row):
        shape = query.shape or planned_shape(query.frame, query.plan.output_mode)
    shared: dict[str, None] = {}
    own = []
    for exchange in shape.exchanges:
        node, by = exchange.operator, exchange.text.replace(_ROUTED, "route")
        if node in query.sharing.shared:
            divided = "" if _ROUTED in exchange.text else f" by {by}"
            shared[f"{node}{divided}, for all its consumers"] = None
        else:
            own.append(f"{node} by {by}")
    return (*shared, *own)
