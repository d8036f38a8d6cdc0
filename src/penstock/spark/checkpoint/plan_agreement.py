"""What a checkpoint and whoever goes on with it must agree on: the plan, and all else."""

from collections.abc import Collection, Mapping

from pyspark.sql import SparkSession

from penstock.model.topology import Topology
from penstock.spark.checkpoint.carried_state import carry_over, next_directory
from penstock.spark.checkpoint.layout import Checkpoint
from penstock.spark.checkpoint.plan_record import (
    PlannedTopology,
    PlanRecord,
    changed_queries,
    record_of,
    refusal,
)


def identity(
    topology: Topology,
    built: PlannedTopology,
    session: SparkSession,
    sources: Mapping[str, str],
) -> dict[str, object]:
    """What state and outputs depend on; a restart with another identity is refused.

    `sources` is the identity of each source by name.
    """
    declared = {sink.name: sink.upstream for sink in topology.sinks}  # whatever the order it has
    return {
        "topology": topology.name,
        "order of sources": [source.name for source in topology.sources],
        "source": dict(sources),
        "sink": {
            sink.name: [declared.get(sink.name, sink.upstream), query.plan.name, sink.output_mode]
            for query in built.queries
            for sink in query.sinks
        },
        "key_groups": int(str(session.conf.get("spark.sql.shuffle.partitions"))),
        "schema": built.schemas,
        "key": {name: list(key) for name, key in built.keys.items()},
    }


def recorded_plan(checkpoint: Checkpoint) -> PlanRecord | None:
    """The plan that a checkpoint was created with, or carried over to."""
    found = checkpoint.plan()
    return None if found is None else PlanRecord.from_json(found)


def read_again_since(checkpoint: Checkpoint) -> Mapping[str, Collection[str]] | None:
    """By query, the sources that each consumer reads again since it began; None: none began."""
    record = recorded_plan(checkpoint)
    if record is not None:
        return record.again
    return {} if checkpoint.has_batches() else None  # of a version that recorded no plan


def agree_on_plan(
    built: PlannedTopology, checkpoint: Checkpoint, session: SparkSession, apply: bool
) -> None:
    """Refuse another plan than the state was made by, unless `apply` lets it be carried over."""
    before = recorded_plan(checkpoint)
    record = record_of(built, before)
    for query in changed_queries(built, before):
        name, old = query.plan.name, checkpoint.query_folder(query.plan.name)
        if not (old / "offsets").is_dir():
            continue  # nothing has run yet
        if not apply:
            raise refusal(query, before, checkpoint.directory)
        directory = next_directory(name, old)
        if before is not None:
            before = before.superseding(name, directory)  # goes if this is cut short
            checkpoint.record_plan(before.to_json())
        carry_over(
            session, query, old, old.with_name(directory), checkpoint.commits(name),
            checkpoint.last_handed(),
        )  # fmt: skip
        record = record.moved(name, directory)
    checkpoint.record_plan(record.to_json())
