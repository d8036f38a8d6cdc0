"""What the loop controls on Spark: a topology together or apart, or queries that are attached."""

from collections.abc import Callable, Sequence
from contextlib import suppress

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from penstock.config import Settings
from penstock.control.actions import SetExecutors
from penstock.control.assembly import planned_limits
from penstock.control.code_cache import CodeCacheAdvice
from penstock.control.controlled import Controlled
from penstock.control.key_group_count import KeyGroupAdvice
from penstock.errors import Unavailable
from penstock.model.compiled import Compiled
from penstock.model.observation import KeyGroups
from penstock.spark import handles
from penstock.spark.act.actuator import SparkActuator, traffic_of
from penstock.spark.act.apart import ApartActuator
from penstock.spark.act.attached_placements import AttachedPlacements
from penstock.spark.act.executors import SparkExecutors
from penstock.spark.act.placement import Placement, cannot_place
from penstock.spark.cluster import generated_code
from penstock.spark.measure.apart import ApartMeasurer
from penstock.spark.measure.attached import AttachedMeasurer, state_partitions
from penstock.spark.measure.together import SparkMeasurer
from penstock.spark.run.apart import RunningApart
from penstock.spark.run.together import RunningTopology


def together(
    running: RunningTopology, settings: Settings, placements: Sequence[Placement]
) -> Controlled:
    """A topology whose components share all processors in time."""
    topology = running.topology
    needed = {"shed", "cheaper", "forms", "interval_s"}
    ours = all(needed <= source.orders for source in running.inputs.values())
    actuator = SparkActuator(running.session, placements, running, all_ours=ours)
    slots = actuator.slots_per_executor()
    if running.pool is None:  # where others share the session, the arbiter says how many
        running.send_parallelism(actuator.executors() * slots)
    limits = planned_limits(
        settings,
        settings.executors_min * slots,
        settings.executors_max * slots,
        topology.max_latency_s,
        topology.share,
    )
    places = settings.allocation is not None
    traffic = (lambda: traffic_of(placements)) if places else None
    measurer = SparkMeasurer(running, traffic, limits.share)
    key_groups = settings.key_groups if any(q.stateful for q in running.built.queries) else 0
    return Controlled(
        measurer=KeyGroupAdvice(measurer, lambda: key_groups, settings.executors_max * slots),
        actuator=actuator,
        limits=limits,
        edges=component_edges(running),
        route_tasks={
            source.name: source.route.partitions
            for source in running.built.topology.sources
            if source.route is not None and source.route.follow
        },
        cheaper_forms=topology.variants,
        forms=topology.forms,
    )


def apart(running: RunningApart, settings: Settings, placements: Sequence[Placement]) -> Controlled:
    """Components with processors of their own, as in a network of queues."""
    placing = settings.allocation is not None
    executors: SparkActuator | SparkExecutors = (
        SparkActuator(running.session, placements) if placing else SparkExecutors(running.session)
    )
    slots = executors.slots_per_executor()
    local = str(running.session.sparkContext.master).startswith("local")
    least, most = processors_apart(settings, len(running.apart.parts), slots, local)
    limits = planned_limits(
        settings, least, most, running.topology.max_latency_s, running.topology.share
    )
    return Controlled(
        measurer=ApartMeasurer(running, lambda: _held_by(placements), limits.share),
        actuator=ApartActuator(running, executors),
        limits=limits,
        edges=running.apart.edges,
        sharing="space",
        parallelism=running.parallelism(),
    )


def processors_apart(
    settings: Settings, components: int, slots: int, local: bool
) -> tuple[int, int]:
    """Least and most processors: one for each component, and those of the executors allowed.

    A local master is one executor whose processors need not all be given to components.

    >>> processors_apart(Settings(executors_min=3), 2, slots=2, local=False)
    (6, 8)
    """
    least = components if local else max(components, slots * settings.executors_min)
    return least, max(least, slots * (1 if local else settings.executors_max))


def attached(
    session: SparkSession,
    queries: Callable[[], Sequence[StreamingQuery]],
    max_latency_s: float,
    settings: Settings,
    placements: AttachedPlacements | None,
) -> Controlled:
    """Queries that were started without Penstock; each is one component."""
    actuator = SparkActuator(session, placements.current if placements is not None else ())
    if not settings.dry_run and SetExecutors.NAME not in actuator.unavailable():
        with suppress(Unavailable):  # it is tried again with the first change, which then says why
            actuator.take_over()
    slots = actuator.slots_per_executor()
    held_state = placements.follow if placements is not None else None
    limits = planned_limits(
        settings, settings.executors_min * slots, settings.executors_max * slots, max_latency_s
    )
    measurer = KeyGroupAdvice(
        AttachedMeasurer(session, queries, max_latency_s, held_state, limits.share),
        lambda: max((state_partitions(query) for query in queries()), default=0),
        settings.executors_max * slots,
    )
    kept = int(session.conf.get(generated_code.SETTING) or generated_code.SPARKS_OWN)
    return Controlled(
        measurer=CodeCacheAdvice(
            measurer, lambda: _compiled(session), kept, generated_code.LEAST, generated_code.SETTING
        ),
        actuator=actuator,
        limits=limits,
    )


def _compiled(session: SparkSession) -> Compiled | None:
    with suppress(Unavailable):
        return handles.compiled_code(session)
    return None


def placements_of(running: RunningTopology) -> list[Placement]:
    """One for each query of a topology, also after it was started again; none if not possible."""
    if cannot_place(running.session):
        return []
    built = running.built.queries

    def placement(place: int) -> Placement:
        name = built[place].plan.name
        return Placement(
            running.session, running.queries[place], built[place].plan,
            grouping=lambda batch_id: running.grouping(name, batch_id),
        )  # fmt: skip

    made = [placement(place) for place in range(len(built))]
    place_of = {query.plan.name: place for place, query in enumerate(built)}

    def started_again(place: int) -> None:
        made[place].close()
        made[place] = placement(place)

    running.before_batch.append(lambda query, _: made[place_of[query]].boundary())
    running.after_restart.append(started_again)
    return made


def _held_by(placements: Sequence[Placement]) -> dict[str, KeyGroups]:
    """The key groups of all queries, by component."""
    return {name: held for one in placements for name, held in one.observe().items()}


def component_edges(running: RunningTopology) -> tuple[tuple[str, str], ...]:
    """Which component feeds which, over all queries."""
    home = {
        node: component.name
        for query in running.built.plan.queries
        for component in query.components
        for node in (component.name, *component.operators)
    }
    edges = [
        (home[upstream], home[operator])
        for query in running.built.queries
        for operator, upstreams in query.edges.items()
        for upstream in upstreams
    ]
    return tuple(dict.fromkeys(edge for edge in edges if edge[0] != edge[1]))
