"""The initial plan of Algorithm 1: a depth-first walk that fuses along it.

Guo and Zhou 2017, s. 5.1.
"""

from penstock.fusion.costs import Costs, FusionLimits
from penstock.fusion.members import Members


def initial_plan(costs: Costs, limits: FusionLimits) -> list[Members]:
    """Components found by a depth-first walk along the streams.

    From the operator on top of the stack the walk goes to its first unvisited downstream, which
    joins the component of that operator when the keys stay compatible, and starts its own
    otherwise. Walks start at the operators that nothing feeds.

    Differs from Guo and Zhou 2017, s. 5.1: joining must also respect beta and the size limit.
    """
    graph = costs.graph
    downstreams: list[list[int]] = [[] for _ in range(graph.size)]
    fed = [False] * graph.size
    for up, down in zip(graph.upstream.tolist(), graph.downstream.tolist(), strict=True):
        downstreams[up].append(down)
        fed[down] = True
    components: list[Members] = []
    shared: list[int] = []
    home = [-1] * graph.size
    largest = limits.max_component_size or graph.size

    def settle(position: int, wanted: int | None) -> None:
        if wanted is not None:
            grown = components[wanted] | 1 << position
            common = shared[wanted] & graph.key_bits[position]
            fits = common != 0 and grown.bit_count() <= largest
            if fits and costs.within([grown], limits)[0]:
                components[wanted], shared[wanted], home[position] = grown, common, wanted
                return
        home[position] = len(components)
        components.append(1 << position)
        shared.append(graph.key_bits[position])

    unvisited = [iter(downs) for downs in downstreams]
    for root in sorted(range(graph.size), key=lambda position: fed[position]):
        if home[root] >= 0:
            continue
        settle(root, None)
        stack = [root]
        while stack:
            top = stack[-1]
            child = next((c for c in unvisited[top] if home[c] < 0), None)
            if child is None:
                stack.pop()
                continue
            settle(child, home[top])
            stack.append(child)
    return components
