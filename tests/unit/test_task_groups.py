"""Which key groups tasks work on, and what each key group took."""

from types import SimpleNamespace
from unittest.mock import Mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.spark.act.task_groups import task_groups
from penstock.spark.handles.stage_parts import StagePart
from penstock.spark.handles.work import JobInfo, StageInfo, TaskColumns
from penstock.spark.measure import batch_work

HOMES = st.lists(st.sampled_from(["", "1", "2", "3"]), min_size=1, max_size=12)


@given(HOMES, st.integers(1, 12), st.randoms())
def test_every_key_group_is_in_one_task_of_its_own_node(
    homes: list[str], tasks: int, random: "np.random.Generator"
) -> None:
    loads = [float(random.random()) for _ in homes]
    made = task_groups(homes, loads, tasks)
    assert sorted(group for task in made for group in task) == list(range(len(homes)))
    assert all(len({homes[group] for group in task}) == 1 for task in made)
    assert len(made) == max(len(set(homes)), min(tasks, len(homes)))


def test_tasks_go_to_where_the_load_is() -> None:
    assert task_groups(["1", "1", "1", "2"], [5.0, 4.0, 1.0, 1.0], 3) == [[0], [1, 2], [3]]


def tasks_of(executors: list[str], run_time_ms: list[int]) -> TaskColumns:
    count = len(executors)
    columns = {
        **{name: [0] * count for name in TaskColumns.__dataclass_fields__},
        "partition": list(range(count)), "executor": executors, "run_time_ms": run_time_ms,
        "status": ["SUCCESS"] * count,
    }  # fmt: skip
    return TaskColumns(**{name: np.array(value) for name, value in columns.items()})


def test_the_time_of_a_task_is_divided_among_its_key_groups() -> None:
    tasks = tasks_of(["a", "b"], [4000, 1000])
    part = StagePart(("n",), stateful=(0,), key_groups=3)
    found = batch_work._group_load(part, tasks, np.array([0, 1]), None, [[0, 1], [2]])
    assert found.run_time_s.tolist() == [2.0, 2.0, 1.0]
    assert found.executor.tolist() == ["a", "a", "b"]
    nothing = batch_work._group_load(part, tasks, np.array([0, 1]), found, [])
    assert nothing.run_time_s.tolist() == [2.0, 2.0, 1.0], "what is not known changes nothing"


def test_the_time_of_gathered_key_groups_is_divided_evenly() -> None:
    tasks = tasks_of(["a", "a"], [4000, 2000])
    part = StagePart(("n",), tasks=2, stateful=(0,), key_groups=4, gathered=True)
    found = batch_work._group_load(part, tasks, np.array([0, 1]), None)
    assert found.run_time_s.tolist() == [1.5] * 4
    assert found.executor.tolist() == ["a"] * 4


PARTS = (
    StagePart(("n",), stateful=(0,), reported=(0,), key_groups=2),
    StagePart((), reads_source=True, downstream=0, exchange_rdd=11, shuffle=0),
)


@pytest.fixture
def jobs(monkeypatch: pytest.MonkeyPatch) -> list[JobInfo]:
    """The jobs that Spark tells of: one that sends a table to executors, and batch 5."""

    def stage(number: int, rdd: int) -> StageInfo:
        return StageInfo(number, 0, "", "COMPLETE", 2, 10, 0, 0, 0, 0, 1, frozenset({rdd}))

    stages = {number: stage(number, 10 + number) for number in range(3)}
    tasks = {0: (["x"], [9000]), 1: (["a"], [100]), 2: (["a", "b"], [2000, 1000])}
    told = [JobInfo(n, 5, "DONE", ids, 1) for n, ids in ((0, (0,)), (1, (1, 2)))]
    monkeypatch.setattr(batch_work, "handles", SimpleNamespace(
        why_unavailable=lambda *_: "",
        jobs_of_group=lambda _, __, after: tuple(job for job in told if job.id > after),
        stages=lambda _, ids: tuple(stages[number] for number in ids),
        stage_tasks=lambda _, number, __: tasks_of(*tasks[number]),
    ))  # fmt: skip
    return told


def test_work_that_is_read_before_its_plan_waits_for_it(jobs: list[JobInfo]) -> None:
    """A batch goes on after its jobs; the loop may come in between, and every time."""
    reader = batch_work.WorkReader(Mock(), Mock(), None)
    assert reader.take() is None
    assert reader.take() is None
    reader.look(5, Mock(stage_parts=lambda: PARTS))
    found = reader.take()
    assert found is not None
    assert found.batches == {5}
    jobs.append(JobInfo(2, 6, "DONE", (1, 2), 1))
    again = reader.take()
    assert again is not None, "of a form that is known, the plan of each batch is not needed"
    assert again.batches == {6}


def test_work_whose_plan_nobody_saw_does_not_hold_up_what_follows(jobs: list[JobInfo]) -> None:
    reader = batch_work.WorkReader(Mock(), Mock(), None)
    assert reader.take() is None
    jobs.append(JobInfo(2, 6, "DONE", (1, 2), 1))
    reader.look(6, Mock(stage_parts=lambda: PARTS))
    found = reader.take()
    assert found is not None
    assert found.batches == {5, 6}


def test_jobs_that_send_a_table_to_executors_are_not_taken_for_the_batch(
    jobs: list[JobInfo],
) -> None:
    reader = batch_work.WorkReader(Mock(), Mock(), None)
    reader.look(5, Mock(stage_parts=lambda: PARTS))
    found = reader.take()
    assert found is not None
    assert [(one.component, one.tasks, one.reported) for one in found.stages] == [
        ("stateless", 1, ()),
        ("state-0", 2, (0,)),
    ]
    assert found.groups["state-0"].executor.tolist() == ["a", "b"]
    assert found.groups["state-0"].run_time_s.tolist() == [2.0, 1.0]
    assert not reader.curious
