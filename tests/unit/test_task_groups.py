"""Tasks of several key groups: which ones, and what each of their key groups took."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from penstock.spark.act.task_groups import task_groups
from penstock.spark.handles.stage_parts import StagePart
from penstock.spark.handles.work import TaskColumns
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


def test_the_time_of_a_task_is_divided_among_its_key_groups() -> None:
    tasks = TaskColumns(
        **{
            name: np.array(value)
            for name, value in {
                **{name: [0, 0] for name in TaskColumns.__dataclass_fields__},
                "partition": [0, 1], "executor": ["a", "b"], "run_time_ms": [4000, 1000],
            }.items()
        }
    )  # fmt: skip
    part = StagePart(("n",), stateful=(0,), key_groups=3)
    found = batch_work._group_load(part, tasks, np.array([0, 1]), None, [[0, 1], [2]])
    assert found.run_time_s.tolist() == [2.0, 2.0, 1.0]
    assert found.executor.tolist() == ["a", "a", "b"]
    nothing = batch_work._group_load(part, tasks, np.array([0, 1]), found, [])
    assert nothing.run_time_s.tolist() == [2.0, 2.0, 1.0], "what is not known changes nothing"
