"""What a batch of another plan would shuffle and take, from what was measured of this one."""

import pytest
from pyspark.sql.types import LongType, StructField, StructType, TimestampType

from penstock.fusion.price import (
    Price,
    StageCosts,
    Workflow,
    foretell,
    shuffle_plan,
    stage_costs,
)
from penstock.model.observation import Observation, StageWork
from penstock.spark.run.fusion_price import row_bytes

KEYS = {"cut": (), "by_key": ("a", "b"), "by_b": ("b",)}
CHAIN = Workflow(
    KEYS,
    [("rows", "cut"), ("cut", "by_key"), ("by_key", "by_b")],
    {("rows", "cut"): 1000.0, ("cut", "by_key"): 1000.0, ("by_key", "by_b"): 900.0},
    {"rows": 40.0, "cut": 40.0, "by_key": 80.0, "by_b": 60.0},
    shared=(),
    once=("cut",),
)
FUSED = [("by_key", "by_b")]


def test_a_chain_saves_a_stage_and_the_rows_between() -> None:
    alone, fused = shuffle_plan(CHAIN, []), shuffle_plan(CHAIN, FUSED)
    assert (alone.stages, fused.stages) == (2, 1)
    assert (alone.rows(1.0), fused.rows(1.0)) == (1900.0, 1000.0)
    # Of 1,900 rows 950 were left when they were sent: half of each shuffle.
    now = Price(rows=950.0, size_bytes=(500 * 80 + 450 * 60) / 2, batch_s=1.0)
    then = foretell(now, alone, fused, 8, StageCosts(task_s=0.03, row_s=0.0), slots=2)
    assert then.rows == 1000.0  # nothing merges rows before they enter a component
    assert then.size_bytes == pytest.approx(1000 * 40 / 2)  # compressed as well as now
    assert then.batch_s == pytest.approx(1.0 - 8 * 0.03 / 2)


def test_rows_that_nothing_merges_any_more_are_sent_one_by_one() -> None:
    alone, fused = shuffle_plan(CHAIN, []), shuffle_plan(CHAIN, FUSED)
    costs = StageCosts(task_s=0.0, row_s=1e-4)
    # A tenth is left of what is merged: 190 rows where the component is sent 1,000.
    then = foretell(Price(190.0, 1e4, 1.0), alone, fused, 8, costs, slots=2)
    assert then.batch_s == pytest.approx(1.0 + 810 * 1e-4 / 2)
    # Fewer than now are saved with their tasks, and not twice.
    assert foretell(Price(1900.0, 1e4, 1.0), alone, fused, 8, costs, slots=2).batch_s == 1.0


def stages(*seen: StageWork) -> Observation:
    return Observation(5.0, 5.0, 100.0, 0.0, stages=seen)


def test_what_state_takes_of_a_task_is_not_saved_with_it() -> None:
    source = StageWork("rows", 2, rows=0, task_s=9.0, run_s=1.0)
    between = StageWork("by_key", 8, rows=1000, task_s=0.24, run_s=0.08)
    first = StageWork("by_key", 8, rows=1000, task_s=1.0, run_s=0.84, state_s=0.7)
    second = StageWork("by_b", 8, rows=200, task_s=0.6, run_s=0.36, state_s=0.2)
    # By hand: 20 ms to launch a task, 160 + 160 + 240 ms over 24 of them, and 10 ms to shuffle.
    found = stage_costs([stages(source, between, first, second)])
    assert found is not None
    assert found.task_s == pytest.approx(0.56 / 24 + 0.01)
    assert found.row_s == pytest.approx(0.08 / 1000)


def test_costs_are_those_of_the_batch_in_the_middle_and_never_negative() -> None:
    window = [
        stages(StageWork("a", 4, 100, task_s=ms / 1e3, run_s=0.0)) for ms in (400, 40, 4, 80, 20)
    ]
    assert stage_costs(window) == StageCosts(pytest.approx(0.01), 0.0)
    # Times of several states overlap, and may seem to be more than the tasks ran.
    overlapping = StageWork("b", 4, 100, task_s=0.6, run_s=0.4, state_s=0.5)
    assert stage_costs([stages(overlapping)]) == StageCosts(pytest.approx(0.05), 0.0)
    assert stage_costs([stages()]) is None


def test_branches_share_the_shuffle_of_a_node_that_is_divided_once() -> None:
    flow = Workflow(
        {"cut": (), "one": ("a",), "two": ("a", "b"), "three": ("c",)},
        [("rows", "cut"), ("cut", "one"), ("cut", "two"), ("cut", "three")],
        dict.fromkeys([("rows", "cut"), ("cut", "one"), ("cut", "two"), ("cut", "three")], 100.0),
        dict.fromkeys(["rows", "cut", "one", "two", "three"], 40.0),
        shared=("cut",),
        once=("cut",),
    )
    alone, fused = shuffle_plan(flow, []), shuffle_plan(flow, [("one", "two")])
    # Each reader of a shared exchange has a stage before its own shuffle and one behind it.
    assert (alone.stages, fused.stages) == (6, 3)
    assert alone.rows(1.0) == 400.0
    assert fused.rows(1.0) == 200.0  # once into the component, which is the shared one, and three


def test_a_join_merges_nothing_before_it() -> None:
    flow = Workflow(
        {"pairs": ("a",)}, [("left", "pairs"), ("right", "pairs")],
        {("left", "pairs"): 50.0, ("right", "pairs"): 70.0},
        {"left": 40.0, "right": 40.0, "pairs": 60.0}, (), (), exact=("pairs",),
    )  # fmt: skip
    assert shuffle_plan(flow, []).rows(0.0) == 120.0


def test_a_window_of_time_counts_nothing_as_it_is_compressed_away() -> None:
    times = [StructField(name, TimestampType()) for name in ("start", "end")]
    plain = [StructField("a", LongType()), StructField("n", LongType())]
    windowed = StructType([*plain, StructField("window", StructType(times))])
    assert row_bytes(windowed) == row_bytes(StructType(plain)) == 24
    inside = StructType([*plain, StructField("pair", StructType(plain))])
    assert row_bytes(inside) == 24 + 8 + 24
