"""The cheapest plan as an exact set partition.

Guo and Zhou 2017, s. 5.2, Algorithm 2, with eq. 1's cost.
"""

from dataclasses import dataclass

import numpy as np

from penstock.fusion.attribute_choice import choose_attributes
from penstock.fusion.components import enumerate_components
from penstock.fusion.costs import Costs, FusionLimits
from penstock.fusion.greedy import greedy, improve
from penstock.fusion.members import Members
from penstock.fusion.pool import pool_of
from penstock.fusion.set_program import choose_sets


@dataclass(frozen=True)
class Partition:
    """A plan, the bound no plan within the limits is below, and how both were found."""

    components: tuple[Members, ...]
    lower_bound: float
    note: str


def mwsc(costs: Costs, limits: FusionLimits) -> Partition:
    """Minimise sum of x_i (psi_i - phi_i) with every operator in exactly one chosen component.

    As cost = l - sum of phi_i + sum of psi_i over the chosen components, this is eq. 1 without the
    constant l (the load of all streams). When not all components can be enumerated, the pool holds
    all up to a size, those of the greedy plan and of the best choice of attributes; the bound then
    comes from the attributes and holds for components of every size.

    Differs from Guo and Zhou 2017, s. 5.2: eq. 3's weights psi_i + l - phi_i count l once per
    component, see `mwsc_literal`. Operators that alone are above beta are chosen only where no plan
    does without them.
    """
    graph = costs.graph
    found = enumerate_components(graph, limits.max_component_size, limits.max_pool)
    start = greedy(costs, limits)
    every = found.complete or found.size == limits.max_component_size
    attributes = None if every else choose_attributes(graph)
    seeds = [*start, *(_seeds(costs, limits, attributes.components) if attributes else ())]
    pool = pool_of(costs, limits, found, seeds)
    # Beta may keep a component of the greedy plan out of the pool; lone operators are always in.
    known = set(pool.components)
    first = pool.positions(start) if known.issuperset(start) else range(graph.size)
    choice = choose_sets(
        pool.components, pool.adaptation - pool.internal, graph.size, partition=True, start=first
    )
    components = tuple(pool.components[number] for number in choice.chosen)
    above_beta = pool.adaptation.sum(where=np.isin(np.arange(len(known)), choice.chosen))
    above_beta -= costs.adaptation(components).sum()
    bound = graph.total_rows + choice.bound - above_beta
    if attributes is not None:
        # Solved over a part of all components only: what is left to do may be done by moves.
        components = tuple(improve(costs, limits, components))
        bound = graph.total_rows - attributes.most_saved_rows
    upto = f"all of up to {found.size} operators"
    reach = "all there are" if found.complete else upto if every else f"{upto} and some larger"
    proof = "solved to the optimum" if choice.proven else "stopped at the limit of search nodes"
    note = f"chose from {len(pool.components)} components ({reach}), {proof}"
    return Partition(components, max(0.0, bound), note)


def _seeds(
    costs: Costs, limits: FusionLimits, components: tuple[Members, ...]
) -> tuple[Members, ...]:
    """The components of the best attributes, and those that moves make of them."""
    largest = limits.max_component_size or costs.graph.size
    within = costs.within(components, limits)
    if not all(within) or max(members.bit_count() for members in components) > largest:
        return components
    return (*components, *improve(costs, limits, components))
