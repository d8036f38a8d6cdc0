"""The greedy set cover over enumerated components.

Guo and Zhou 2017, s. 5.2, after Cormen ch. 35.
"""

import heapq

import numpy as np

from penstock.fusion.costs import Costs, FusionLimits
from penstock.fusion.members import Members, positions_of
from penstock.fusion.pool import component_pool, without_redundant


def mwsc_greedy(costs: Costs, limits: FusionLimits) -> list[Members]:
    """Take the component of least weight per operator not yet covered, until all are.

    The weight of a component is psi + cut / 2, with cut the rows of streams that leave or enter
    it: a stream between two components is cut by both, so the weights of a plan add up to its
    cost of eq. 1. A weight per operator only rises as others are covered, so a heap with stale
    entries finds the least one.

    Differs from Guo and Zhou 2017, s. 5.2: weights psi + cut / 2 in place of psi + l - phi (see
    mwsc_literal).
    """
    pool = component_pool(costs, limits)
    # Streams at an operator, each counted at both ends: less twice the inner ones is the cut.
    touching = [sum(links.values()) for links in costs.graph.links]
    around = [sum(touching[p] for p in positions_of(members)) for members in pool.components]
    weights = (pool.adaptation + np.array(around) / 2 - pool.internal).clip(min=0.0).tolist()
    heap = [
        (weight / members.bit_count(), -members.bit_count(), number)
        for number, (members, weight) in enumerate(zip(pool.components, weights, strict=True))
    ]
    heapq.heapify(heap)
    missing = (1 << costs.graph.size) - 1
    cover = []
    while missing:
        ratio, _, number = heapq.heappop(heap)
        fresh = (pool.components[number] & missing).bit_count()
        if fresh == 0:
            continue
        now = weights[number] / fresh
        if now > ratio and heap and (now, -fresh, number) > heap[0]:
            heapq.heappush(heap, (now, -fresh, number))
            continue
        cover.append(pool.components[number])
        missing &= ~pool.components[number]
    return without_redundant(costs, limits, cover)
