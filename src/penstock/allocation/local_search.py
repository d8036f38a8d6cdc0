"""Ruin and recreate: take some moves back, then spend the budget again where it helps most.

The search looks for a placement inside a window around the mean a little narrower than the best
distance found; when it has one, the window narrows. Within a window the sum of squared excesses
falls by best exchanges at the violating nodes (neighbourhood.py); where that stalls, some moves
that share a node are taken back home, which frees budget, and the repair starts again.
Reference: the objective is Madsen et al. 2017, s. 4.3.1; the search is ours.
"""

import math

import numpy as np

from penstock.allocation.budget import SearchBudget
from penstock.allocation.neighbourhood import FIXED_WORK, State, Window, best_exchange, candidates
from penstock.allocation.problem import NOWHERE, AllocationProblem, Bools, Ints, distance, rank

MOST_CANDIDATES = 400  # key groups of other nodes weighed in one look
MOST_PARTNERS = 200
TRIES = 60  # rounds without progress before a window is given up
ANYWHERE = Window(math.inf, math.inf)
CLOSE_ENOUGH = 1e-3  # points above the bound that are not worth more search


class LocalSearch:
    """One search from one start; the best placement found is in `best`."""

    def __init__(
        self,
        problem: AllocationProblem,
        start: Ints,
        budget: SearchBudget,
        rng: np.random.Generator,
    ) -> None:
        self._problem = problem
        self._budget = budget
        self._rng = rng
        self._movable: Bools = problem.pinned == NOWHERE
        self._may_receive: Bools = problem.open.copy()
        self.best = start.copy()
        self.rounds = 0

    def narrow_distance(self, bound: float) -> None:
        """Lower the load distance d towards its bound until the budget is spent."""
        if self._problem.overuse(self.best) > 0:  # no distance counts before limits are kept
            kept = self._reach(ANYWHERE, tries=TRIES)
            self.best = self.best if kept is None else kept
        step = 0.25
        while not self._budget.over:
            reached = distance(self._problem, self.best).load_distance
            if reached <= bound + CLOSE_ENOUGH:
                return
            aim = reached - max(step * (reached - bound), CLOSE_ENOUGH / 2)
            found = self._reach(Window(aim, aim), tries=TRIES)
            if found is None:
                step /= 2
                if step < 1e-3:
                    step = 0.25
            else:
                self.best = found
                step = min(step * 1.5, 0.5)

    def narrow_other_side(self, d: float) -> None:
        """With d kept, lower the smaller of the two deviations (the second level)."""
        step = 0.25
        while not self._budget.over and step > 0.02:
            found = distance(self._problem, self.best)
            if found.upper + found.lower <= CLOSE_ENOUGH:
                return
            upper_binds = found.upper >= found.lower
            other = min(found.upper, found.lower)
            aim = other - max(step * abs(other), CLOSE_ENOUGH)
            window = Window(d, aim) if upper_binds else Window(aim, d)
            better = self._reach(window, tries=TRIES)
            if better is None:
                step /= 2
            else:
                self.best = better

    def _reach(self, window: Window, tries: int) -> Ints | None:
        """A placement inside the window, or None after some tries without progress."""
        current = State(self._problem, self.best)
        self._budget.spend(FIXED_WORK)
        self._repair(current, window, noise=0.0)
        harm = float(current.violations(window).sum())
        idle = 0
        while harm > 0 and idle < tries and not self._budget.over:
            self.rounds += 1
            candidate = current.copy()
            self._ruin(candidate)
            self._repair(candidate, window, noise=self._rng.choice([0.0, 0.3, 0.6]))
            new_harm = float(candidate.violations(window).sum())
            idle = 0 if new_harm < harm * 0.999 else idle + 1
            if new_harm <= harm * (1.0 + 0.02 * self._rng.random()):
                current, harm = candidate, new_harm
        self._keep(current.placement)
        return current.placement if harm <= 0 else None

    def _keep(self, placement: Ints) -> None:
        if rank(self._problem, placement) < rank(self._problem, self.best):
            self.best = placement.copy()

    def _repair(self, state: State, window: Window, noise: float) -> None:
        """Best exchanges at violating nodes until none helps."""
        stuck = np.zeros(len(self._problem.capacity), dtype=bool)
        while not self._budget.over:
            harm = np.where(stuck, 0.0, state.violations(window))
            node = int(harm.argmax())
            if harm[node] <= 0:
                return
            others, partners = self._candidates(state, node)
            weighed = candidates(state, node, others, partners, self._movable)
            members = len(state.placement) / len(state.totals)
            self._budget.spend(FIXED_WORK + len(weighed.where) * (1 + members))
            found = best_exchange(state, window, weighed, self._may_receive, noise, self._rng)
            if found is None:
                stuck[node] = True
                continue
            if found.leaving != NOWHERE:
                state.move(found.leaving, found.partner)
            if found.entering != NOWHERE:
                state.move(found.entering, node)
            stuck[:] = False

    def _candidates(self, state: State, node: int) -> tuple[Ints, Ints]:
        others = np.flatnonzero((state.placement != node) & self._movable)
        partners = np.flatnonzero(np.arange(len(state.totals)) != node)
        if len(others) > MOST_CANDIDATES:
            others = self._rng.choice(others, MOST_CANDIDATES, replace=False)
        if len(partners) > MOST_PARTNERS:
            partners = self._rng.choice(partners, MOST_PARTNERS, replace=False)
        return others, partners

    def _ruin(self, state: State) -> None:
        """Take some moves back, more likely those that share a node with the first of them."""
        problem = self._problem
        moved = np.flatnonzero(
            (state.placement != problem.home) & (problem.home != NOWHERE) & self._movable
            & self._may_receive[problem.home]
        )  # fmt: skip
        if len(moved) == 0:
            return
        seed = int(self._rng.choice(moved))
        touched = {int(problem.home[seed]), int(state.placement[seed])}
        near = np.isin(problem.home[moved], list(touched)) | np.isin(
            state.placement[moved], list(touched)
        )
        wanted = int(self._rng.integers(1, 1 + min(8, math.ceil(len(moved) / 2))))
        likely = np.where(near, 5.0, 1.0)
        chosen = self._rng.choice(
            moved, size=min(wanted, len(moved)), replace=False, p=likely / likely.sum()
        )
        for group in chosen:
            state.move(int(group), int(problem.home[group]))
