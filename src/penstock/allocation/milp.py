"""The mixed-integer program of Madsen et al. 2017, s. 4.3.1, solved by HiGHS.

    min  w_1 d - w_2 (d_u + d_l)
    (1)  each key group is on one node
    (2)  sum of the costs of moved key groups <= budget
    (3)  load of a node <= mean + (d - d_u)      (draining nodes too)
    (4)  load of a node >= mean - (d - d_l)      (nodes that stay)

with d, d_u, d_l as in Table 2. Here upper = d - d_u and lower = d - d_l are variables at most d,
and only moves are binary variables: a key group that moves nowhere is at home. Key groups may go to
nodes that stay (Lemma 1), node loads are divided by capacity, and a further resource is one more
constraint like (3) with its own limit.
Differs from Madsen et al. 2017, s. 4.3.1: constraint (5), d <= mean, is left out, as a node above
twice the mean that the budget cannot relieve would make the program infeasible.
"""

import math
from dataclasses import dataclass

import highspy
import numpy as np

from penstock.allocation.problem import NOWHERE, TOLERANCE, AllocationProblem, Bools, Floats, Ints

FIRST_WEIGHT, SECOND_WEIGHT = 1.0, 1e-3


@dataclass(frozen=True)
class ExactAnswer:
    """What the solver found; `bound` is proven for the load distance."""

    placement: Ints | None
    bound: float
    optimal: bool


def solve_exact(
    problem: AllocationProblem,
    *,
    time_limit_s: float = math.inf,
    max_nodes: int | None = None,
    start: Ints | None = None,
    bound: float = 0.0,
) -> ExactAnswer:
    """Solve the program.

    `start` is a placement to improve on, `bound` a proven one. A limit in branch-and-bound nodes
    is repeatable, one in time is not. Where limits or draining cannot be kept, as little of them as
    possible is given up, limits last.
    """
    asked = _Search(problem, time_limit_s, max_nodes, start, bound)
    answer = asked.run(_Demands(drained=True, kept=True))
    if answer.placement is None and problem.must_drain and problem.draining.any():
        answer = asked.run(_Demands(drained=False, kept=True))
    if answer.placement is None and problem.resources:
        least = asked.run(_Demands(drained=False, kept=False))
        if least.placement is None:
            return answer
        overuse = problem.overuse(least.placement)
        answer = asked.run(_Demands(drained=False, kept=False, overuse=overuse))
        answer = answer if answer.placement is not None else least
    return answer


@dataclass(frozen=True)
class _Demands:
    """Which demands the program makes: what it does not demand it counts against a placement.

    With limits not kept it looks for the least overuse, or for the best with no more than that.
    """

    drained: bool
    kept: bool
    overuse: float | None = None

    @property
    def by_distance(self) -> bool:
        return self.kept or self.overuse is not None


@dataclass(frozen=True)
class _Search:
    problem: AllocationProblem
    time_limit_s: float
    max_nodes: int | None
    start: Ints | None
    bound: float

    def run(self, demands: _Demands) -> ExactAnswer:
        model = _Model(self.problem, self.bound, demands)
        solver = highspy.Highs()  # type: ignore[no-untyped-call]
        solver.setOptionValue("output_flag", False)
        solver.setOptionValue("threads", 1)
        if math.isfinite(self.time_limit_s):
            solver.setOptionValue("time_limit", self.time_limit_s)
        if self.max_nodes is not None:
            solver.setOptionValue("mip_max_nodes", self.max_nodes)
        solver.setOptionValue("mip_rel_gap", 1e-6 if demands.drained else 1e-9)
        solver.passModel(model.program())
        if self.start is not None and demands.drained:
            solution = highspy.HighsSolution()
            solution.col_value = list(model.values(self.start))
            solver.setSolution(solution)
        solver.run()
        info = solver.getInfo()
        optimal = solver.getModelStatus() == highspy.HighsModelStatus.kOptimal
        placement = None
        if info.primal_solution_status == highspy.SolutionStatus.kSolutionStatusFeasible:
            placement = model.placement(np.array(solver.getSolution().col_value))
        # upper and lower are at most d, so the objective is at most (w_1 + 2 w_2) d.
        proven = info.mip_dual_bound / (FIRST_WEIGHT + 2 * SECOND_WEIGHT)
        sound = demands.drained and math.isfinite(proven)
        return ExactAnswer(placement, max(self.bound, proven if sound else 0.0), optimal)


class _Model:
    """Columns: one for each possible move, then d, upper, lower, then overuse of each limit."""

    def __init__(self, problem: AllocationProblem, bound: float, demands: _Demands) -> None:
        self._problem = problem
        self._bound = bound
        self._demands = demands
        free = problem.pinned == NOWHERE
        self._base = np.where(free, problem.home, problem.pinned)
        targets, movers = np.flatnonzero(problem.open), np.flatnonzero(free)
        group, node = np.meshgrid(movers, targets, indexing="ij")
        real = node != self._base[group]
        self._group, self._node = group[real], node[real]
        limits = len(problem.resources) * len(problem.capacity)
        self._overused = 0 if demands.kept else limits

    def program(self) -> highspy.HighsLp:
        """The model in HiGHS's row-wise form."""
        problem, moves = self._problem, len(self._group)
        d, upper, lower = moves, moves + 1, moves + 2
        rows = _Rows()
        self._add_choice(rows)
        spent = problem.cost(self._base)
        if math.isfinite(problem.max_migration_cost):
            rows.add(np.arange(moves), problem.move_cost[self._group],
                     -math.inf, problem.max_migration_cost - spent)  # fmt: skip
        totals = problem.totals(self._base)
        for node in range(len(problem.capacity)):
            columns, coefficients = self._flow(node, problem.load)
            capacity = problem.capacity[node]
            rows.add(np.append(columns, upper), np.append(coefficients / capacity, -1.0),
                     -math.inf, problem.mean - totals[node] / capacity)  # fmt: skip
            if problem.open[node]:
                rows.add(np.append(columns, lower), np.append(coefficients / capacity, 1.0),
                         problem.mean - totals[node] / capacity, math.inf)  # fmt: skip
            self._add_resources(rows, node)
        rows.add(np.array([d, upper]), np.array([1.0, -1.0]), 0.0, math.inf)
        rows.add(np.array([d, lower]), np.array([1.0, -1.0]), 0.0, math.inf)
        if self._demands.overuse is not None:
            most = self._demands.overuse * (1 + TOLERANCE) + TOLERANCE
            every = moves + 3 + np.arange(self._overused)
            rows.add(every, np.ones(self._overused), -math.inf, most)
        return self._assemble(rows, moves)

    def _assemble(self, rows: "_Rows", moves: int) -> highspy.HighsLp:
        program = highspy.HighsLp()
        overused = self._overused
        program.num_col_, program.num_row_ = moves + 3 + overused, rows.count
        program.col_cost_ = self._costs(moves)
        program.col_lower_ = np.concatenate(
            [np.zeros(moves), [self._bound, -np.inf, -np.inf], np.zeros(overused)]
        )
        program.col_upper_ = np.concatenate([np.ones(moves), np.full(3 + overused, np.inf)])
        program.integrality_ = [highspy.HighsVarType.kInteger] * moves + [
            highspy.HighsVarType.kContinuous
        ] * (3 + overused)
        program.row_lower_, program.row_upper_ = np.array(rows.lower), np.array(rows.upper)
        program.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
        program.a_matrix_.start_ = np.array(rows.starts)
        program.a_matrix_.index_ = np.concatenate(rows.columns).astype(np.int32)
        program.a_matrix_.value_ = np.concatenate(rows.values)
        return program

    def _costs(self, moves: int) -> Floats:
        problem, overused = self._problem, np.zeros(self._overused)
        if not self._demands.by_distance:
            return np.concatenate([np.zeros(moves), [0.0, SECOND_WEIGHT**2, 0.0], overused + 1.0])
        leaving = np.zeros(moves)
        if not self._demands.drained and problem.must_drain:
            # No distance is worth a key group that stays where it should not.
            widest = problem.mean + float(problem.total / problem.capacity.min())
            leaving[self._leaves()] = -2.0 * (widest + 1.0)
        distances = [FIRST_WEIGHT, SECOND_WEIGHT, SECOND_WEIGHT]
        return np.concatenate([leaving, distances, overused])

    def _leaves(self) -> Bools:
        """Moves that take a key group off a draining node."""
        home = self._base[self._group]
        leaves: Bools = (home != NOWHERE) & ~self._problem.open[home]
        return leaves

    def _add_choice(self, rows: "_Rows") -> None:
        problem = self._problem
        starts = np.flatnonzero(np.diff(self._group, prepend=-1))
        for columns in np.split(np.arange(len(self._group)), starts[1:]) if len(starts) else []:
            home = self._base[self._group[columns[0]]]
            drained = problem.must_drain and self._demands.drained
            leave = home == NOWHERE or (drained and not problem.open[home])
            rows.add(columns, np.ones(len(columns)), 1.0 if leave else 0.0, 1.0)

    def _add_resources(self, rows: "_Rows", node: int) -> None:
        placed = self._base != NOWHERE
        nodes = len(self._problem.capacity)
        for number, resource in enumerate(self._problem.resources):
            limit = float(resource.limit[node])
            if math.isinf(limit):
                continue
            used = float(resource.use[placed & (self._base == node)].sum())
            columns, coefficients = self._flow(node, resource.use)
            if self._overused:
                over = len(self._group) + 3 + number * nodes + node
                columns = np.append(columns, over)
                coefficients = np.append(coefficients, -max(limit, TOLERANCE))
            rows.add(columns, coefficients, -math.inf, limit - used)

    def _flow(self, node: int, weight: Floats) -> tuple[Ints, Floats]:
        entering = np.flatnonzero(self._node == node)
        leaving = np.flatnonzero(self._base[self._group] == node)
        columns = np.concatenate([entering, leaving])
        signs = np.concatenate([np.ones(len(entering)), -np.ones(len(leaving))])
        return columns, signs * weight[self._group[columns]]

    def values(self, placement: Ints) -> Floats:
        """The columns that stand for a placement."""
        problem = self._problem
        loads = problem.node_loads(placement)
        upper = float(loads.max() - problem.mean)
        lower = float(problem.mean - loads[problem.open].min())
        chosen = (placement[self._group] == self._node).astype(np.float64)
        return np.concatenate([chosen, [max(upper, lower, self._bound), upper, lower]])

    def placement(self, values: Floats) -> Ints:
        """The placement that columns stand for."""
        found = self._base.copy()
        chosen = np.flatnonzero(values[: len(self._group)] > 0.5)
        found[self._group[chosen]] = self._node[chosen]
        return found


class _Rows:
    def __init__(self) -> None:
        self.starts, self.columns, self.values = [0], [], []  # type: ignore[var-annotated]
        self.lower: list[float] = []
        self.upper: list[float] = []

    @property
    def count(self) -> int:
        return len(self.lower)

    def add(self, columns: Ints, values: Floats, lower: float, upper: float) -> None:
        self.columns.append(columns)
        self.values.append(values)
        self.starts.append(self.starts[-1] + len(columns))
        self.lower.append(lower)
        self.upper.append(upper)
