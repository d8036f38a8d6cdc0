"""All moves and swaps that touch one node, weighed at once.

A key group of no load and no cost stands on every node, so that a move is a swap with nothing and
one matrix (key groups here x key groups elsewhere) holds both.
"""

from dataclasses import dataclass

import numpy as np

from penstock.allocation.problem import (
    NOWHERE,
    TOLERANCE,
    AllocationProblem,
    Bools,
    Floats,
    Ints,
    summed_by,
)

OVERUSE_WEIGHT = 1e4  # a share of a resource too much weighs more than any distance
CHEAPEST = 0.2  # of a typical move: what an exchange that costs nothing is divided by
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
            summed_by(placement, resource.use, len(problem.capacity))
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
            over = np.maximum(usage - resource.limit, 0.0)  # of a node without a limit 0 as well
            share = over / np.maximum(resource.limit, TOLERANCE)
            found += OVERUSE_WEIGHT * np.where(over > TOLERANCE, share, 0.0)
        return found


@dataclass(frozen=True)
class Exchange:
    """A key group leaves a node (or none does) and another enters it (or none does)."""

    leaving: int  # NOWHERE for none
    entering: int  # NOWHERE for none
    partner: int  # the other node


@dataclass(frozen=True)
class Candidates:
    """What is weighed at one node: its own key groups against those of others, and against none."""

    node: int
    here: Ints  # key groups of the node that may leave it
    others: Ints  # key groups of other nodes that may enter it
    partners: Ints  # nodes that may take a key group and give none
    where: Ints  # the other node of each column: those of `others`, then `partners`


def candidates(state: State, node: int, others: Ints, partners: Ints, movable: Bools) -> Candidates:
    """All exchanges of a node with some key groups and some nodes."""
    here = np.flatnonzero((state.placement == node) & movable)
    where = np.concatenate([state.placement[others], partners])
    return Candidates(node, here, others, partners, where)


def best_exchange(
    state: State,
    window: Window,
    weighed: Candidates,
    may_receive: Bools,
    noise: float,
    rng: np.random.Generator,
) -> Exchange | None:
    """The exchange with the most gain for its cost within the budget, or None.

    `noise` blurs gains, for variety.
    """
    if len(weighed.where) == 0:
        return None
    problem = state.problem
    price = _prices(state, weighed)
    now = state.violations(window)
    gain = now[weighed.node] + now[weighed.where] - _harm(state, window, weighed)
    # The budget is what is scarce: the gain that counts is the one for each unit of cost.
    gain /= np.maximum(price, CHEAPEST * problem.typical_cost)
    if noise:
        gain *= rng.uniform(1.0 - noise, 1.0, gain.shape)
    gain[price > problem.max_migration_cost - state.spent + TOLERANCE] = -np.inf
    gain[~_permitted(problem, weighed, may_receive)] = -np.inf
    row, column = divmod(int(gain.argmax()), gain.shape[1])
    if not gain[row, column] > TOLERANCE**2:
        return None
    return Exchange(
        leaving=int(weighed.here[row]) if row < len(weighed.here) else NOWHERE,
        entering=int(weighed.others[column]) if column < len(weighed.others) else NOWHERE,
        partner=int(weighed.where[column]),
    )


def _shift(weighed: Candidates, amount: Floats) -> Floats:
    """How much of something each exchange brings to the node: rows leave, columns enter."""
    entering = np.concatenate([amount[weighed.others], np.zeros(len(weighed.partners))])
    leaving = np.concatenate([amount[weighed.here], [0.0]])
    shift: Floats = entering[None, :] - leaving[:, None]
    return shift


def _harm(state: State, window: Window, weighed: Candidates) -> Floats:
    """Violations of the two nodes after each exchange."""
    problem, node, where = state.problem, weighed.node, weighed.where
    shift = _shift(weighed, problem.load)
    here = (state.totals[node] + shift) / problem.capacity[node] - problem.mean
    there = (state.totals[where] - shift) / problem.capacity[where] - problem.mean
    harm: Floats = np.maximum(here - window.upper, 0.0) ** 2
    harm += np.maximum(there - window.upper, 0.0) ** 2
    if problem.open[node]:
        harm += np.maximum(-here - window.lower, 0.0) ** 2
    harm += problem.open[where] * np.maximum(-there - window.lower, 0.0) ** 2
    for usage, resource in zip(state.usage, problem.resources, strict=True):
        use = _shift(weighed, resource.use)
        scale = np.maximum(resource.limit, TOLERANCE)
        over = np.maximum(usage[node] + use - resource.limit[node], 0.0) / scale[node]
        over += np.maximum(usage[where] - use - resource.limit[where], 0.0) / scale[where]
        harm += OVERUSE_WEIGHT * over
    return harm


def _prices(state: State, weighed: Candidates) -> Floats:
    """What each exchange adds to the cost spent; negative where a key group goes home."""
    problem, node, others = state.problem, weighed.node, weighed.others
    cost, home = problem.move_cost[weighed.here], problem.home[weighed.here]
    leaving = cost[:, None] * (home[:, None] != weighed.where) - (cost * (home != node))[:, None]
    price = np.concatenate([leaving, np.zeros((1, len(weighed.where)))])
    was_away = problem.home[others] != state.placement[others]
    is_away = problem.home[others] != node
    price[:, : len(others)] += problem.move_cost[others] * (is_away.astype(float) - was_away)
    return price


def _permitted(problem: AllocationProblem, weighed: Candidates, may_receive: Bools) -> Bools:
    """A key group may enter nodes that stay, and its own home if it has left it."""
    home = problem.home[weighed.here]
    rows = may_receive[weighed.where] | (home[:, None] == weighed.where)
    permitted: Bools = np.concatenate([rows, np.ones((1, rows.shape[1]), dtype=bool)])
    if not may_receive[weighed.node]:
        permitted[:, : len(weighed.others)] &= problem.home[weighed.others] == weighed.node
    return permitted
