"""The handles answer on the pinned Spark, and say so where they cannot."""

from pathlib import Path
from types import SimpleNamespace

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.streaming import StreamingQuery

from penstock.control.actions import SetExecutors
from penstock.errors import Unavailable
from penstock.spark import handles
from penstock.spark.act.executors import SparkExecutors
from penstock.spark.handles import Family
from penstock.spark.handles.driver import installed_sources, leave_out_search_for_sources
from penstock.spark.handles.gateway import java_class, scala_object
from penstock.spark.handles.work import map_output_tracker
from spark.run_to import until

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def query(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> StreamingQuery:
    """A stateful query that has done some batches and is over."""
    place = tmp_path_factory.mktemp("query")
    (place / "in").mkdir()
    rows = spark.range(1000)
    for part in range(3):
        rows.coalesce(1).write.mode("append").parquet(str(place / "in" / f"p={part}"))
    running = (
        spark.readStream.schema("id long").option("maxFilesPerTrigger", 1)
        .parquet(str(place / "in" / "*"))
        .selectExpr("id % 7 as k").groupBy("k").count()
        .writeStream.outputMode("update").format("noop")
        .option("checkpointLocation", str(place / "checkpoint"))
        .trigger(availableNow=True).start()
    )  # fmt: skip
    assert running.awaitTermination(120)
    return running


def test_only_what_needs_executors_is_unavailable_on_a_local_master(spark: SparkSession) -> None:
    broken = handles.probe(spark)
    assert set(broken) == {Family.REQUEST_EXECUTORS, Family.DRAIN_EXECUTORS}
    assert all("local[2]" in reason for reason in broken.values())


def test_a_changed_spark_is_reported_and_not_raised() -> None:
    gone = SimpleNamespace(
        sparkContext=SimpleNamespace(master="k8s://x", _jsc=None, _jvm=None),  # others have no pods
        conf=SimpleNamespace(get=lambda key, default: default),
    )
    broken = handles.probe(gone)  # type: ignore[arg-type]
    assert set(broken) >= set(Family) - {Family.LOAD_CLASSES}  # those of the driver still load
    assert all(reason.endswith(".") for reason in broken.values())


def test_spark_does_not_search_for_sources_that_are_not_there(spark: SparkSession) -> None:
    held = installed_sources(spark)
    option, before = java_class(spark, "scala.Option"), held.dataSourceBuilders()
    none = scala_object(spark, "scala.collection.immutable.Map").empty()
    hold = getattr(held, "dataSourceBuilders_$eq")
    try:
        hold(option.empty())
        leave_out_search_for_sources(spark)
        assert held.dataSourceBuilders().get().isEmpty()
        hold(option.apply(none.updated("found", None)))
        leave_out_search_for_sources(spark)
        assert held.dataSourceBuilders().get().contains("found"), "what was found stays"
    finally:
        hold(before)


def test_jobs_of_a_query_are_its_batches(spark: SparkSession, query: StreamingQuery) -> None:
    jobs = handles.jobs_of_group(spark, str(query.runId))
    assert {job.batch_id for job in jobs} == {0, 1, 2}
    assert {job.status for job in jobs} == {"SUCCEEDED"}
    later = handles.jobs_of_group(spark, str(query.runId), after_job=jobs[0].id)
    assert later == jobs[1:]


def test_a_shuffle_that_is_not_whole_has_no_sizes(spark: SparkSession) -> None:
    tracker, lost = map_output_tracker(spark), 1_000_000
    assert handles.shuffle_sizes(spark, lost, 1) is None
    tracker.registerShuffle(lost, 2, 1)  # whose two map tasks left nothing
    try:
        assert handles.shuffle_sizes(spark, lost, 1) is None
    finally:
        tracker.unregisterShuffle(lost)


def test_tasks_count_every_row_once(spark: SparkSession, query: StreamingQuery) -> None:
    jobs = handles.jobs_of_group(spark, str(query.runId))
    ids = tuple(stage for job in jobs for stage in job.stage_ids)
    until(lambda: all(stage.completed_ms for stage in handles.stages(spark, ids)))
    found = handles.stages(spark, ids)
    tasks = [handles.stage_tasks(spark, stage.id, stage.attempt) for stage in found]
    assert sum(int(column.input_records.sum()) for column in tasks) == 3 * 1000
    written = sum(int(column.shuffle_records_written.sum()) for column in tasks)
    read = sum(int(column.shuffle_records_read.sum()) for column in tasks)
    assert written == read == 3 * 7
    assert sum(stage.input_records for stage in found) == 3 * 1000
    for stage, column in zip(found, tasks, strict=True):
        assert len(column) == stage.tasks
        assert set(column.status.tolist()) == {"SUCCESS"}
        assert sorted(column.partition.tolist()) == list(range(stage.tasks))
        assert int(column.run_time_ms.sum()) == stage.run_time_ms


def test_unknown_stages_and_groups_are_empty(spark: SparkSession) -> None:
    assert handles.stages(spark, (10**6,)) == ()
    assert len(handles.stage_tasks(spark, 10**6)) == 0
    assert handles.jobs_of_group(spark, "nobody") == ()


def test_a_reported_state_location_is_found_again(
    spark: SparkSession, tmp_path: Path
) -> None:  # fmt: skip
    run = "11111111-2222-3333-4444-555555555555"
    key = handles.StateStoreKey(f"file:{tmp_path}/state", run, operator=0, partition=3)
    assert handles.state_location(spark, key) is None
    handles.report_state_location(spark, key, "some_host", "17")
    assert handles.state_location(spark, key) == "17"


def test_requesting_executors_of_a_local_master_is_refused(spark: SparkSession) -> None:
    with pytest.raises(Unavailable):
        handles.request_total_executors(spark, 2)


def test_the_actuator_of_a_local_master_says_that_it_is_none(spark: SparkSession) -> None:
    actuator = SparkExecutors(spark)
    assert "local[2]" in actuator.unavailable()[SetExecutors.NAME]
    assert (actuator.executors(), actuator.slots_per_executor()) == (1, 2)
    outcome = actuator.act(SetExecutors(2))
    assert not outcome.done
    assert "local[2]" in outcome.detail


def test_a_configuration_keeps_its_values_and_forgets_their_sources(spark: SparkSession) -> None:
    held = spark.sparkContext._jsc.hadoopConfiguration()
    folder = held.get("hadoop.tmp.dir")
    assert folder is not None
    assert list(held.getPropertySources("hadoop.tmp.dir")) == ["core-default.xml"]
    handles.lighten_configuration(spark)
    assert held.get("hadoop.tmp.dir") == folder
    assert held.getPropertySources("hadoop.tmp.dir") is None


def test_a_pool_is_made_and_changed_while_it_runs(spark: SparkSession) -> None:
    assert handles.pool_slots(spark, "of a test") is None
    handles.set_pool(spark, "of a test", 3)
    assert handles.pool_slots(spark, "of a test") == 3
    handles.set_pool(spark, "of a test", 1)
    assert handles.pool_slots(spark, "of a test") == 1
    handles.set_pool(spark, "of another", 2)
    assert handles.pool_slots(spark, "of a test") == 1
