"""Going on with the plan that a checkpoint's state was made by, or carrying the state over."""

from pyspark.sql import SparkSession

from penstock.spark.checkpoint.carried_state import carry_over, next_directory
from penstock.spark.checkpoint.layout import Checkpoint
from penstock.spark.checkpoint.plan_record import PlanRecord, changed_queries, record_of, refusal
from penstock.spark.checkpoint.planned import PlannedTopology


def recorded_plan(checkpoint: Checkpoint) -> PlanRecord | None:
    """The plan that a checkpoint was created with, or carried over to."""
    found = checkpoint.plan()
    return None if found is None else PlanRecord.from_json(found)


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
        carry_over(
            session, query, old, old.with_name(directory), checkpoint.commits(name),
            checkpoint.stopped_after(),
        )  # fmt: skip
        record = record.moved(name, directory)
    checkpoint.record_plan(record.to_json())
