"""All moves and swaps that touch one node, weighed at once.

A key group of no load and no cost stands on every node, so that a move is a swap with nothing and
one matrix (key groups here x key groups elsewhere) holds both.
"""

from dataclasses import dataclass

import numpy as np

from penstock.allocation.problem import TOLERANCE, AllocationProblem, Floats, Ints

OVERUSE_WEIGHT = 1e4  # a share of a resource too much weighs more than any distance
FIXED_WORK = 8_000  # what an evaluation costs besides its candidates, in candidates


@dataclass(frozen=True)
class Window:
    """The deviations from the mean that a search accepts at present."""

    upper: float
    lower: float


class State:
    """A placement with its sums, changed in place by one search."""

    def __init__(self, problem: AllocationProblem, placement: Ints) -> None:
        self.problem = problem
        self.placement = placement.copy()
        self.totals = problem.totals(placement)
        self.spent = problem.cost(placement)
        self.usage = [
            np.bincount(placement, weights=resource.use, minlength=len(problem.capacity))
            for resource in problem.resources
        ]

    def copy(self) -> "State":
        """An independent state of the same placement."""
        twin = object.__new__(State)
        twin.problem = self.problem
        twin.placement = self.placement.copy()
        twin.totals = self.totals.copy()
        twin.spent = self.spent
        twin.usage = [usage.copy() for usage in self.usage]
        return twin

    def move(self, group: int, node: int) -> None:
        """Put one key group on a node."""
        problem, old = self.problem, self.placement[group]
        self.totals[old] -= problem.load[group]
        self.totals[node] += problem.load[group]
        home = problem.home[group]
        self.spent += problem.move_cost[group] * (int(node != home) - int(old != home))
        for usage, resource in zip(self.usage, problem.resources, strict=True):
            usage[old] -= resource.use[group]
            usage[node] += resource.use[group]
        self.placement[group] = node

    def violations(self, window: Window) -> Floats:
        """For each node the square of what exceeds the window, and overused resources."""
        problem = self.problem
        excess = self.totals / problem.capacity - problem.mean
        found = np.maximum(excess - window.upper, 0.0) ** 2
        found += problem.open * np.maximum(-excess - window.lower, 0.0) ** 2
        for usage, resource in zip(self.usage, problem.resources, strict=True):
            over = usage - resource.limit
            found += OVERUSE_WEIGHT * np.where(
                over > TOLERANCE, over / np.maximum(resource.limit, TOLERANCE), 0.0
            )
        return found


@dataclass(frozen=True)
class Exchange:
    """A key group leaves a node (or none does) and another enters it (or none does)."""

    leaving: int  # -1 for none
    entering: int  # -1 for none
    partner: int  # the other node
    gain: float


def best_exchange(
    state: State,
    window: Window,
    node: int,
    others: Ints,
    partners: Ints,
    may_receive: np.ndarray,
    movable: np.ndarray,
    noise: float,
    rng: np.random.Generator,
) -> Exchange | None:
    """The exchange with the most gain in violations within the budget, or None.

    `others` are the key groups of other nodes that are weighed, `partners` the nodes that may
    simply take a key group. `noise` blurs gains, for variety.
    """
    problem = state.problem
    home, load, cost = problem.home, problem.load, problem.move_cost
    here = np.flatnonzero((state.placement == node) & movable)
    where = np.concatenate([state.placement[others], partners])
    entering_load = np.concatenate([load[others], np.zeros(len(partners))])
    leaving_load = np.concatenate([load[here], [0.0]])

    shift = entering_load[None, :] - leaving_load[:, None]
    after_here = (state.totals[node] + shift) / problem.capacity[node] - problem.mean
    after_there = (state.totals[where] - shift) / problem.capacity[where] - problem.mean
    harm = np.maximum(after_here - window.upper, 0.0) ** 2
    harm += np.maximum(after_there - window.upper, 0.0) ** 2
    if problem.open[node]:
        harm += np.maximum(-after_here - window.lower, 0.0) ** 2
    harm += problem.open[where] * np.maximum(-after_there - window.lower, 0.0) ** 2

    own_cost, own_home = cost[here], home[here]
    price = own_cost[:, None] * (own_home[:, None] != where) - (own_cost * (own_home != node))[:, None]
    price = np.concatenate([price, np.zeros((1, len(where)))])
    other_cost, other_home = cost[others], home[others]
    entering_price = other_cost * (other_home != node) - other_cost * (
        other_home != state.placement[others]
    )
    price[:, : len(others)] += entering_price
    allowed = price <= problem.max_migration_cost - state.spent + TOLERANCE
    allowed[:-1] &= may_receive[where] | (own_home[:, None] == where)
    if not may_receive[node]:
        allowed[:, : len(others)] &= other_home == node
    now = state.violations(window)
    for usage, resource in zip(state.usage, problem.resources, strict=True):
        use = np.concatenate([resource.use[others], np.zeros(len(partners))])[None, :] - (
            np.concatenate([resource.use[here], [0.0]])[:, None]
        )
        scale = np.maximum(resource.limit, TOLERANCE)
        over_here = np.maximum(usage[node] + use - resource.limit[node], 0.0) / scale[node]
        over_there = np.maximum(usage[where] - use - resource.limit[where], 0.0) / scale[where]
        harm += OVERUSE_WEIGHT * (over_here + over_there)
    gain = now[node] + now[where] - harm
    if noise:
        gain *= rng.uniform(1.0 - noise, 1.0, gain.shape)
    gain[~allowed] = -np.inf
    row, column = divmod(int(gain.argmax()), gain.shape[1])
    if not gain[row, column] > TOLERANCE**2:
        return None
    return Exchange(
        leaving=int(here[row]) if row < len(here) else -1,
        entering=int(others[column]) if column < len(others) else -1,
        partner=int(where[column]),
        gain=float(gain[row, column]),
    )
