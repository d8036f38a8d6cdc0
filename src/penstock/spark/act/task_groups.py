"""Which key groups the tasks of a component work on, where it has fewer tasks than key groups."""

from collections.abc import Sequence


def task_groups(homes: Sequence[str], loads: Sequence[float], tasks: int) -> list[list[int]]:
    """Key groups in so many tasks, or in one for each node that holds any if these are more.

    Those of a task live on one node ("" where it is not known). Each task more goes to the node
    where the most load is left for one; there, the heaviest key group goes to the lightest task.

    >>> task_groups(["1", "2", "1", "1"], [1.0, 1.0, 1.0, 1.0], 3)
    [[0, 3], [2], [1]]
    """
    held: dict[str, list[int]] = {}
    for group, home in enumerate(homes):
        held.setdefault(home, []).append(group)
    share = dict.fromkeys(held, 1)
    weight = {home: sum(loads[group] for group in groups) for home, groups in held.items()}
    while sum(share.values()) < min(tasks, len(homes)):
        open_homes = [home for home in held if share[home] < len(held[home])]
        heaviest = max(open_homes, key=lambda home: (weight[home] / share[home], home))
        share[heaviest] += 1
    return [task for home in sorted(held) for task in _dealt(held[home], loads, share[home])]


def _dealt(groups: Sequence[int], loads: Sequence[float], tasks: int) -> list[list[int]]:
    dealt: list[list[int]] = [[] for _ in range(tasks)]
    weight = [0.0] * tasks
    for group in sorted(groups, key=lambda one: (-loads[one], one)):
        # Of equally light tasks the one with fewer: none is left empty.
        lightest = min(range(tasks), key=lambda task: (len(dealt[task]) > 0, weight[task], task))
        dealt[lightest].append(group)
        weight[lightest] += loads[group]
    return [sorted(task) for task in dealt]
