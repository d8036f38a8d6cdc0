"""The cost of a fusion plan: communication and adaptation, in rows.

Guo and Zhou 2017, s. 4, eq. 1.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from penstock.fusion.graph import OperatorGraph
from penstock.fusion.members import Members, positions_of
from penstock.fusion.rebalancing import TOLERANCE, RebalancingRule, state_moves
from penstock.model.observation import Floats

GROUPS_PER_INSTANCE = 4  # key groups of an instance if all operators were one component
BUSY_SHARE = 0.5  # of an even share of the work; a task without rows takes some time, too
_CELLS_AT_ONCE = 2_000_000  # numbers in one block of histograms: tens of megabytes


@dataclass(frozen=True)
class FusionLimits:
    """What a plan may not exceed.

    `beta` bounds the adaptation cost of a component; `max_pool` is how many components an exact
    algorithm may choose from before it stops enumerating at a smaller size. Operators are not fused
    by a key of which fewer than `min_groups` key groups are known to have work.
    """

    beta: float | None = None
    max_component_size: int | None = None
    max_pool: int = 20_000
    min_groups: int = 1


@dataclass(frozen=True)
class FusedComponent:
    """Operators of one component, the key they share, and the rows of state it would move."""

    operators: tuple[str, ...]
    key: tuple[str, ...]
    adaptation_cost: float


@dataclass(frozen=True)
class FusionPlan:
    """Disjoint components that hold every operator once, with the two parts of eq. 1.

    `lower_bound` is proven for all plans within the limits; None when nothing was proven.
    """

    components: tuple[FusedComponent, ...]
    communication_cost: float
    adaptation_cost: float
    lower_bound: float | None = None

    @property
    def cost(self) -> float:
        """Eq. 1: rows between components and rows of state moved."""
        return self.communication_cost + self.adaptation_cost

    @property
    def gap(self) -> float | None:
        """How far above the lower bound the cost is, as a share of the cost."""
        if self.lower_bound is None:
            return None
        return max(0.0, self.cost - self.lower_bound) / self.cost if self.cost > 0 else 0.0


def rule_for(
    graph: OperatorGraph, capacity_rows: float | None = None, tolerance: float = TOLERANCE
) -> RebalancingRule:
    """The rule with what is given; without a capacity, for a cluster of the application's size."""
    if capacity_rows is None:
        capacity_rows = _capacity_rows(graph)
    return RebalancingRule(capacity_rows, tolerance)


def _capacity_rows(graph: OperatorGraph) -> float:
    """A cluster of the application's size: fused whole, an instance would hold four key groups.

    So no component runs out of key groups to balance with, and a small operator needs one
    instance only. Two instances at least, as one alone has nothing to balance.
    """
    rows_per_window = float(graph.input_rows.sum(axis=(0, 2)).mean())
    instances = max(2.0, graph.input_rows.shape[2] / GROUPS_PER_INSTANCE)
    return rows_per_window / instances or 1.0


class Costs:
    """Costs of components of one graph; adaptation costs are remembered, being dear to compute.

    A component's histograms are the sums of its operators' (all streams into any of them). Where
    those of some members are by the very key of the component, their shares hold for all rows.
    """

    def __init__(self, graph: OperatorGraph, rule: RebalancingRule | None = None) -> None:
        self.graph = graph
        self.rule = rule or rule_for(graph)
        self._known: dict[Members, float] = {}
        self._stateless = not graph.state_rows.any()

    def adaptation(self, components: Sequence[Members]) -> Floats:
        """psi of each component: rows of state moved over all windows."""
        if self._stateless:
            return np.zeros(len(components))
        fresh = list(dict.fromkeys(c for c in components if c not in self._known))
        _, windows, groups = self.graph.input_rows.shape
        step = max(1, _CELLS_AT_ONCE // (windows * groups))
        for start in range(0, len(fresh), step):
            block = fresh[start : start + step]
            costs = self._moves(block)
            self._known.update(zip(block, costs.tolist(), strict=True))
        return np.array([self._known[c] for c in components], dtype=np.float64)

    def _moves(self, components: Sequence[Members]) -> Floats:
        graph = self.graph
        load = np.empty((len(components), *graph.input_rows.shape[1:]))
        state = np.empty_like(load)
        for number, members in enumerate(components):
            inside = list(positions_of(members))
            graph.input_rows[inside].sum(axis=0, out=load[number])
            graph.state_rows[inside].sum(axis=0, out=state[number])
            alike = graph.measured_alike(members)
            if len(inside) > 1 and alike:
                shares = _shares(graph.input_rows[alike].sum(axis=0))
                load[number] = load[number].sum(axis=1, keepdims=True) * shares
                held = graph.state_rows[alike].sum(axis=0)
                of_state = np.where(held.sum(axis=1, keepdims=True) > 0, _shares(held), shares)
                state[number] = state[number].sum(axis=1, keepdims=True) * of_state
        return state_moves(load, state, self.rule)

    def weights(self, components: Sequence[Members], limits: FusionLimits) -> Floats:
        """psi of each component, and more than any plan costs for each that is above beta.

        Lone operators stay to choose from whatever they move, as there may be no plan without one.
        With these weights such an operator is by itself only if there is none.
        """
        moved = self.adaptation(components)
        if limits.beta is None:
            return moved
        alone = self.adaptation([1 << p for p in range(self.graph.size)])
        dearest = 1.0 + self.graph.total_rows + float(alone.sum()) + self.graph.size * limits.beta
        return np.where(moved > limits.beta, moved + dearest, moved)

    def busy_groups(self, members: Members) -> int | None:
        """Key groups that would have work if these operators were fused; None where unknown."""
        alike = self.graph.measured_alike(members)
        rows = self.graph.input_rows[alike].sum(axis=(0, 1))
        if not rows.sum() > 0:
            return None
        return int(np.count_nonzero(rows > BUSY_SHARE * rows.mean()))

    def within(self, components: Sequence[Members], limits: FusionLimits) -> list[bool]:
        """Which components respect the limits on state moved and on key groups with work."""
        kept = [True] * len(components)
        if limits.beta is not None:
            kept = [bool(cost <= limits.beta) for cost in self.adaptation(components)]
        if limits.min_groups > 1:
            kept = [
                fits and not self.too_few_groups(members, limits)
                for fits, members in zip(kept, components, strict=True)
            ]
        return kept

    def too_few_groups(self, members: Members, limits: FusionLimits) -> bool:
        """Whether fusing would leave processors without work; a lone operator is what it is."""
        busy = self.busy_groups(members) if members.bit_count() > 1 else None
        return busy is not None and busy < limits.min_groups

    def total(self, components: Sequence[Members]) -> float:
        """Eq. 1 of a plan."""
        saved = sum(self.graph.internal_rows(component) for component in components)
        return self.graph.total_rows - saved + float(self.adaptation(components).sum())

    def plan(self, components: Iterable[Members], lower_bound: float | None = None) -> FusionPlan:
        """The plan of these components, in the order of their first operators."""
        ordered = sorted(components, key=lambda members: members & -members)
        adaptation = self.adaptation(ordered)
        graph = self.graph
        saved = sum(graph.internal_rows(members) for members in ordered)
        communication = max(0.0, graph.total_rows - saved)
        moved = float(adaptation.sum())
        if lower_bound is not None:
            lower_bound = min(lower_bound, communication + moved)
        return FusionPlan(
            components=tuple(
                FusedComponent(
                    tuple(graph.names[position] for position in positions_of(members)),
                    graph.component_key(members),
                    float(cost),
                )
                for members, cost in zip(ordered, adaptation, strict=True)
            ),
            communication_cost=communication,
            adaptation_cost=moved,
            lower_bound=lower_bound,
        )


def _shares(rows: Floats) -> Floats:
    """Each window's rows as shares of their sum, even where there are none."""
    total = rows.sum(axis=1, keepdims=True)
    even = np.full_like(rows, 1.0 / rows.shape[1])
    shares: Floats = np.divide(rows, total, out=even, where=total > 0)
    return shares
