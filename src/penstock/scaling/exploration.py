"""The order in which AUTOSCALE explores a workflow: every operator after its upstreams."""

from collections import deque
from functools import lru_cache


@lru_cache(maxsize=16)  # a topology is asked for its order every period and hardly ever changes
def upstream_first(upstreams: tuple[tuple[int, ...], ...]) -> tuple[int, ...]:
    """Places of operators, upstreams before downstreams; a loop is cut at its lowest place.

    >>> upstream_first(((), (0, 2), (0,)))
    (0, 2, 1)
    """
    waiting = [len(set(row)) for row in upstreams]
    downstreams: list[list[int]] = [[] for _ in upstreams]
    for place, row in enumerate(upstreams):
        for upstream in set(row):
            downstreams[upstream].append(place)
    ready = deque(place for place, count in enumerate(waiting) if count == 0)
    done = [False] * len(upstreams)
    order: list[int] = []
    cut = 0
    while len(order) < len(upstreams):
        if not ready:
            while done[cut]:
                cut += 1
            ready.append(cut)
        place = ready.popleft()
        if done[place]:
            continue
        done[place] = True
        order.append(place)
        for downstream in downstreams[place]:
            waiting[downstream] -= 1
            if waiting[downstream] == 0 and not done[downstream]:
                ready.append(downstream)
    return tuple(order)
