"""Greedy fusion: move one operator at a time while the cost falls.

Guo and Zhou 2017, s. 5.1, Algorithm 1.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from penstock.fusion.costs import Costs, FusionLimits
from penstock.fusion.graph import OperatorGraph
from penstock.fusion.initial import initial_plan
from penstock.fusion.members import Members, positions_of
from penstock.model.observation import Floats, Ints

_AT_ONCE = 24  # moves priced together; one call prices many components as fast as a few
_LEAST_PROFIT = 1e-9  # share of all costs below which a profit is rounding


@dataclass(frozen=True)
class _Move:
    """Take an operator from one component to another (None: to one of its own)."""

    operator: int
    source: int
    target: int | None


@dataclass(frozen=True)
class _Candidates:
    """Moves as columns, the greatest possible gain first; target -1 is a component of its own."""

    gain: Floats
    operator: Ints
    source: Ints
    target: Ints

    def block(self, start: int) -> list[tuple[float, _Move]]:
        """The next few moves, each with its greatest possible gain."""
        end = start + _AT_ONCE
        return [
            (gain, _Move(operator, source, None if target < 0 else target))
            for gain, operator, source, target in zip(
                self.gain[start:end].tolist(),
                self.operator[start:end].tolist(),
                self.source[start:end].tolist(),
                self.target[start:end].tolist(),
                strict=True,
            )
        ]


class _Walk:
    """The plan as it stands: components by number, and columns of what is known of each."""

    def __init__(self, costs: Costs, limits: FusionLimits, plan: list[Members]) -> None:
        self.costs, self.graph, self.limits = costs, costs.graph, limits
        size = self.graph.size
        self.largest = limits.max_component_size or size
        self.members: dict[int, Members] = {}
        self.home = np.zeros(size, dtype=np.int64)
        self.keys = _key_matrix(self.graph)
        # Two numbers to spare: a move makes the new components before it frees the old.
        self.shared = np.zeros((size + 2, self.keys.shape[1]), dtype=bool)
        self.state_moves = np.zeros(size + 2)
        self.sizes = np.zeros(size + 2, dtype=np.int64)
        self._free = list(range(size + 1, -1, -1))
        self._ends = np.concatenate([self.graph.upstream, self.graph.downstream])
        self._others = np.concatenate([self.graph.downstream, self.graph.upstream])
        self._rows = np.concatenate([self.graph.stream_rows, self.graph.stream_rows])
        self._profit: dict[tuple[int, Members, Members], float] = {}
        self._found(plan)

    def _found(self, components: list[Members]) -> None:
        weights = self.costs.weights(components, self.limits)
        for members, cost in zip(components, weights, strict=True):
            number = self._free.pop()
            positions = list(positions_of(members))
            self.members[number] = members
            self.home[positions] = number
            self.shared[number] = self.keys[positions].all(axis=0)
            self.state_moves[number] = cost
            self.sizes[number] = len(positions)

    def candidates(self) -> "_Candidates":
        """Admissible moves by the most they could gain, should the new components move nothing."""
        pairs, which = np.unique(
            self._ends * len(self.sizes) + self.home[self._others], return_inverse=True
        )
        rows = np.bincount(which, self._rows, len(pairs))
        operator, target = pairs // len(self.sizes), pairs % len(self.sizes)
        source = self.home[operator]
        inside = source == target
        leaving = np.zeros(self.graph.size)
        leaving[operator[inside]] = rows[inside]
        most = rows - leaving[operator] + self.state_moves[source] + self.state_moves[target]
        fits = (self.shared[target] & self.keys[operator]).any(axis=1)
        fits &= ~inside & (most > 0) & (self.sizes[target] < self.largest)
        alone = self.state_moves[self.home] - leaving
        out = np.flatnonzero((alone > 0) & (self.sizes[self.home] > 1))
        gains = np.concatenate([most[fits], alone[out]])
        order = np.argsort(-gains, kind="stable")
        return _Candidates(
            gains[order],
            np.concatenate([operator[fits], out])[order],
            np.concatenate([source[fits], self.home[out]])[order],
            np.concatenate([target[fits], np.full(len(out), -1)])[order],
        )

    def _outcome(self, move: _Move) -> list[Members]:
        """The pieces the source falls into, and the target with the operator."""
        alone = 1 << move.operator
        target = alone if move.target is None else self.members[move.target] | alone
        return [*self.graph.connected_pieces(self.members[move.source] & ~alone), target]

    def profits(self, bounds: list[tuple[float, _Move]]) -> list[float]:
        """delta of each move: communication saved and state moves saved; -inf beyond the limits."""
        keys = [
            (m.operator, self.members[m.source], 0 if m.target is None else self.members[m.target])
            for _, m in bounds
        ]
        fresh = [n for n, key in enumerate(keys) if key not in self._profit]
        outcomes = {n: self._outcome(bounds[n][1]) for n in fresh}
        self.costs.adaptation([members for outcome in outcomes.values() for members in outcome])
        for n, outcome in outcomes.items():
            new = self.costs.weights(outcome, self.limits)
            within = self.costs.within(outcome, self.limits)
            # A lone operator above beta is weighed, not forbidden: it may be there from the start.
            allowed = all(
                fits or members.bit_count() == 1
                for fits, members in zip(within, outcome, strict=True)
            )
            self._profit[keys[n]] = bounds[n][0] - float(new.sum()) if allowed else -math.inf
        return [self._profit[key] for key in keys]

    def apply(self, move: _Move) -> None:
        """Carry a move out."""
        outcome = self._outcome(move)
        self._found(outcome)
        for number in (move.source, move.target):
            if number is not None:
                del self.members[number]
                self._free.append(number)


def _key_matrix(graph: OperatorGraph) -> NDArray[np.bool_]:
    """Operators x attributes; an operator without a key has them all."""
    attributes = graph.attributes or ((),)
    return np.array([[not own or one in own for one in attributes] for own in graph.choices])


def greedy(costs: Costs, limits: FusionLimits) -> list[Members]:
    """Algorithm 1: improve the plan of the depth-first walk until no move pays."""
    return improve(costs, limits, initial_plan(costs, limits))


def improve(costs: Costs, limits: FusionLimits, plan: Sequence[Members]) -> list[Members]:
    """Make the most profitable move of one operator, again and again, until none pays.

    The profit of moving operator k from component i to j is delta = delta1 + delta2, with
    delta1 = phi_j(k) - phi_i(k) the rows no longer sent less the rows now sent, and
    delta2 = (psi_i + psi_j) - (psi_i(k) + psi_j(k)) the state moves saved. As psi is not
    negative, delta1 + psi_i + psi_j bounds the profit, so only moves whose bound exceeds the best
    profit found are priced.

    Differs from Guo and Zhou 2017, s. 5.1: what is left of i may fall apart, and is then priced and
    kept as its connected pieces; an operator may also move to a component of its own.
    """
    walk = _Walk(costs, limits, list(plan))
    scale = costs.graph.total_rows + float(walk.state_moves.sum())
    while True:
        ranked = walk.candidates()
        best, chosen = scale * _LEAST_PROFIT, None
        for start in range(0, len(ranked.gain), _AT_ONCE):
            if ranked.gain[start] <= best:
                break
            block = ranked.block(start)
            for profit, (_, move) in zip(walk.profits(block), block, strict=True):
                if profit > best:
                    best, chosen = profit, move
        if chosen is None:
            return list(walk.members.values())
        walk.apply(chosen)
