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

from penstock.allocation.problem import NOWHERE, AllocationProblem, Floats, Ints

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
    is repeatable, one in time is not.
    """
    model = _Model(problem, bound)
    solver = highspy.Highs()  # type: ignore[no-untyped-call]
    solver.setOptionValue("output_flag", False)
    solver.setOptionValue("threads", 1)
    if math.isfinite(time_limit_s):
        solver.setOptionValue("time_limit", time_limit_s)
    if max_nodes is not None:
        solver.setOptionValue("mip_max_nodes", max_nodes)
    solver.setOptionValue("mip_rel_gap", 1e-6)
    solver.passModel(model.program())
    if start is not None:
        solution = highspy.HighsSolution()
        solution.col_value = list(model.values(start))
        solver.setSolution(solution)
    solver.run()
    info = solver.getInfo()
    optimal = solver.getModelStatus() == highspy.HighsModelStatus.kOptimal
    placement = None
    if info.primal_solution_status == highspy.SolutionStatus.kSolutionStatusFeasible:
        placement = model.placement(np.array(solver.getSolution().col_value))
    # upper and lower are at most d, so the objective is at most (w_1 + 2 w_2) d.
    proven = info.mip_dual_bound / (FIRST_WEIGHT + 2 * SECOND_WEIGHT)
    return ExactAnswer(placement, max(bound, proven if math.isfinite(proven) else 0.0), optimal)


class _Model:
    """Columns: one for each possible move, then d, upper, lower."""

    def __init__(self, problem: AllocationProblem, bound: float) -> None:
        self._problem = problem
        self._bound = bound
        free = problem.pinned == NOWHERE
        self._base = np.where(free, problem.home, problem.pinned)
        targets, movers = np.flatnonzero(problem.open), np.flatnonzero(free)
        group, node = np.meshgrid(movers, targets, indexing="ij")
        real = node != self._base[group]
        self._group, self._node = group[real], node[real]

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
        return self._assemble(rows, moves)

    def _assemble(self, rows: "_Rows", moves: int) -> highspy.HighsLp:
        program = highspy.HighsLp()
        program.num_col_, program.num_row_ = moves + 3, rows.count
        program.col_cost_ = np.concatenate(
            [np.zeros(moves), [FIRST_WEIGHT, SECOND_WEIGHT, SECOND_WEIGHT]]
        )
        program.col_lower_ = np.concatenate([np.zeros(moves), [self._bound, -np.inf, -np.inf]])
        program.col_upper_ = np.concatenate([np.ones(moves), np.full(3, np.inf)])
        program.integrality_ = [highspy.HighsVarType.kInteger] * moves + [
            highspy.HighsVarType.kContinuous
        ] * 3
        program.row_lower_, program.row_upper_ = np.array(rows.lower), np.array(rows.upper)
        program.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
        program.a_matrix_.start_ = np.array(rows.starts)
        program.a_matrix_.index_ = np.concatenate(rows.columns).astype(np.int32)
        program.a_matrix_.value_ = np.concatenate(rows.values)
        return program

    def _add_choice(self, rows: "_Rows") -> None:
        problem = self._problem
        starts = np.flatnonzero(np.diff(self._group, prepend=-1))
        for columns in np.split(np.arange(len(self._group)), starts[1:]) if len(starts) else []:
            home = self._base[self._group[columns[0]]]
            leave = home == NOWHERE or (problem.must_drain and not problem.open[home])
            rows.add(columns, np.ones(len(columns)), 1.0 if leave else 0.0, 1.0)

    def _add_resources(self, rows: "_Rows", node: int) -> None:
        placed = self._base != NOWHERE
        for resource in self._problem.resources:
            used = float(resource.use[placed & (self._base == node)].sum())
            columns, coefficients = self._flow(node, resource.use)
            rows.add(columns, coefficients, -math.inf, float(resource.limit[node]) - used)

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
