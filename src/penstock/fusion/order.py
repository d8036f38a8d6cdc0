"""Order: commuting stateless operators so that cheap and selective ones run first.

Kotto-Kombi 2018, ch. 3 s. 1.2.1 (when a swap is safe, definition 10) and ch. 4 s. 1.3.1 and 2.1.1
(the Order step of the ORACL loop).
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import networkx as nx

from penstock.model.decision import Decision

MOST_EXACT = 12  # operators in a run up to which all orders are weighed
LEAST_GAIN = 0.05  # share of the run's work below which an order is left as it is


@dataclass(frozen=True)
class StatelessOperator:
    """One step of a run: its columns, and what was measured of it.

    `writes` are columns it adds, changes or drops. NaN marks what was not measured; such an
    operator is never moved, nor anything across it.
    """

    name: str
    reads: frozenset[str]
    writes: frozenset[str]
    selectivity: float  # rows out for each row in
    cost_s: float  # processor-seconds for each row in

    @property
    def measured(self) -> bool:
        """Whether both numbers are known."""
        return math.isfinite(self.selectivity) and math.isfinite(self.cost_s)


@dataclass(frozen=True)
class OrderPlan:
    """An order of a run, and the work of one row entering it, before and after."""

    order: tuple[str, ...]
    current_cost_s: float
    expected_cost_s: float

    @property
    def gain(self) -> float:
        """The share of the run's work that the order saves."""
        if not self.current_cost_s > 0:
            return 0.0
        return 1 - self.expected_cost_s / self.current_cost_s


def commute(one: StatelessOperator, other: StatelessOperator) -> bool:
    """Whether two operators may be swapped for what was measured of them."""
    return one.measured and other.measured and independent(one, other)


def independent(one: StatelessOperator, other: StatelessOperator) -> bool:
    """Whether neither of two operators writes what the other reads or writes."""
    return not one.writes & (other.reads | other.writes) and not other.writes & one.reads


def swapped_unduly(
    run: Sequence[StatelessOperator], order: Sequence[str]
) -> tuple[StatelessOperator, StatelessOperator] | None:
    """Two operators of a run that an order would swap although they do not commute, if any."""
    place = {name: number for number, name in enumerate(order)}
    for j, later in enumerate(run):
        for earlier in run[:j]:
            if place[later.name] < place[earlier.name] and not independent(earlier, later):
                return earlier, later
    return None


def work_per_row_s(run: Iterable[StatelessOperator]) -> float:
    """sum over i of cost_i times the product of the selectivities before i.

    Selectivities are taken to be independent of each other, as Kotto-Kombi 2018 asks of a swap. An
    operator that was not measured counts as free and as passing every row.
    """
    reaching, work = 1.0, 0.0
    for operator in run:
        if operator.measured:
            work += reaching * operator.cost_s
            reaching *= operator.selectivity
    return work


def decide_order(
    run: Sequence[StatelessOperator], least_gain: float = LEAST_GAIN
) -> Decision[OrderPlan]:
    """The order of least work for a run of operators that feed each other in this order.

    Operators that do not commute keep their relative order. Up to MOST_EXACT operators the order
    is the best there is; longer runs are improved by swaps of neighbours until none helps.
    Re-proposed by calling again with new measurements; a gain below `least_gain` changes nothing.
    """
    names = tuple(operator.name for operator in run)
    best = _best(run) if len(run) <= MOST_EXACT else _swapped(run)
    order = tuple(operator.name for operator in best)
    plan = OrderPlan(order, work_per_row_s(run), work_per_row_s(best))
    reasons = [
        f"{operator.name}: selectivity or cost was not measured, so it stays."
        for operator in run
        if not operator.measured
    ]
    if order == names or plan.gain < least_gain:
        reasons.append(f"order kept: the best other order would save {max(0.0, plan.gain):.1%}.")
        return Decision(OrderPlan(names, plan.current_cost_s, plan.current_cost_s), tuple(reasons))
    reasons.append(
        f"order {' > '.join(names)} -> {' > '.join(order)}: {plan.current_cost_s:.3g} -> "
        f"{plan.expected_cost_s:.3g} processor-seconds per row ({plan.gain:.1%} less)."
    )
    return Decision(plan, tuple(reasons))


def remeasured(
    run: Sequence[StatelessOperator], selectivities: Mapping[str, float]
) -> tuple[StatelessOperator, ...]:
    """The run with new selectivities where there are any."""
    return tuple(
        replace(operator, selectivity=selectivities.get(operator.name, operator.selectivity))
        for operator in run
    )


def linear_runs(
    streams: Iterable[tuple[str, str]], stateless: Iterable[str]
) -> tuple[tuple[str, ...], ...]:
    """Longest runs of two or more stateless operators that feed only each other, upstream first."""
    graph: nx.DiGraph[str] = nx.DiGraph()
    graph.add_edges_from(streams)
    movable = set(stateless) & set(graph)
    follows = {
        up: down
        for up, down in graph.edges
        if {up, down} <= movable and graph.out_degree(up) == 1 and graph.in_degree(down) == 1
    }
    heads = sorted(set(follows) - set(follows.values()))
    runs = []
    for head in heads:
        run = [head]
        while run[-1] in follows:
            run.append(follows[run[-1]])
        runs.append(tuple(run))
    return tuple(runs)


def _best(run: Sequence[StatelessOperator]) -> tuple[StatelessOperator, ...]:
    """Least work over all sets that may come first, each built from its best prefix."""
    needs = [sum(1 << i for i in range(j) if not commute(run[i], run[j])) for j in range(len(run))]
    # Of a set only the cheapest order matters: what passes it does not depend on its order.
    prefix: dict[int, tuple[float, float, tuple[int, ...]]] = {0: (0.0, 1.0, ())}
    for done in range(1 << len(run)):
        if done not in prefix:
            continue
        work, reaching, order = prefix[done]
        for j, operator in enumerate(run):
            if done >> j & 1 or needs[j] & ~done:
                continue
            longer = done | 1 << j
            step = operator.cost_s if operator.measured else 0.0
            passed = operator.selectivity if operator.measured else 1.0
            total = work + reaching * step
            if longer not in prefix or (total, (*order, j)) < (
                prefix[longer][0],
                prefix[longer][2],
            ):
                prefix[longer] = (total, reaching * passed, (*order, j))
    return tuple(run[j] for j in prefix[(1 << len(run)) - 1][2])


def _swapped(run: Sequence[StatelessOperator]) -> tuple[StatelessOperator, ...]:
    """Swap neighbours that commute while the later has the lower rank (selectivity - 1) / cost."""
    order = list(run)
    changed = True
    while changed:
        changed = False
        for i in range(len(order) - 1):
            first, second = order[i], order[i + 1]
            swapped = work_per_row_s((second, first)) < work_per_row_s((first, second)) * (
                1 - 1e-12
            )
            if commute(first, second) and swapped:
                order[i], order[i + 1] = second, first
                changed = True
    return tuple(order)
