"""Set cover with the weights as the paper prints them (Guo and Zhou 2017, s. 5.2, eq. 2 and 3)."""

from penstock.fusion.costs import Costs, FusionLimits
from penstock.fusion.members import Members
from penstock.fusion.pool import component_pool, without_redundant
from penstock.fusion.set_program import choose_sets

MAX_NODES = 10  # nearly equal weights make a search that hardly ends; a near optimum will do


def mwsc_literal(costs: Costs, limits: FusionLimits) -> list[Members]:
    """Minimise sum of x_i w_i, w_i = psi_i + l - phi_i, with every operator covered at least once.

    Each component chosen pays the load l of the whole graph, so few components win over cheap
    plans; eq. 3 calls (|S| - 1) l a constant, but |S| there is the number of components chosen.
    Kept to show what that does; `mwsc` minimises eq. 1.
    """
    pool = component_pool(costs, limits)
    weights = pool.adaptation + costs.graph.total_rows - pool.internal
    size = costs.graph.size
    choice = choose_sets(
        pool.components, weights, size, partition=False, start=range(size), max_nodes=MAX_NODES
    )
    return without_redundant(costs, limits, [pool.components[number] for number in choice.chosen])
