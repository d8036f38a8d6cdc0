"""How many tasks each routed source deals its rows to: as many as there are processors."""

from collections.abc import Mapping

from penstock.control.actions import SetRouteTasks


def route_tasks(
    most: Mapping[str, int], in_use: Mapping[str, int], processors: int
) -> SetRouteTasks | None:
    """What has to change, or None; `most` is the number of partitions of each source's route.

    >>> route_tasks({"reports": 8}, {}, 4)
    SetRouteTasks(tasks={'reports': 4})
    >>> route_tasks({"reports": 8}, {"reports": 8}, 10) is None
    True
    """
    if processors < 1:
        return None
    wanted = {source: min(partitions, processors) for source, partitions in most.items()}
    changed = {source: tasks for source, tasks in wanted.items() if in_use.get(source) != tasks}
    return SetRouteTasks(changed) if changed else None
