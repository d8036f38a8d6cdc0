"""Set partition and set cover as an integer program, solved by HiGHS."""

from collections.abc import Sequence
from dataclasses import dataclass

import highspy
import numpy as np

from penstock.fusion.members import Members, positions_of
from penstock.model.observation import Floats

MAX_NODES = 500  # of the search tree; a count, not a time, so that the answer repeats


@dataclass(frozen=True)
class SetChoice:
    """The sets chosen, by position; `bound` is what no choice of these sets can be below."""

    chosen: tuple[int, ...]
    bound: float
    proven: bool


def choose_sets(
    sets: Sequence[Members],
    weights: Floats,
    operators: int,
    *,
    partition: bool,
    start: Sequence[int],
    max_nodes: int = MAX_NODES,
) -> SetChoice:
    """Minimise w x over x in {0, 1} with each operator in exactly (or at least) one chosen set.

    `start` is a feasible choice from which the search begins, and the answer if it finds none.
    """
    scale = float(np.abs(weights).max()) or 1.0
    sizes = np.array([members.bit_count() for members in sets], dtype=np.int32)
    model = highspy.HighsLp()
    model.num_col_, model.num_row_ = len(sets), operators
    # Scaled, so that HiGHS's absolute tolerances mean the same for ten rows and for a billion.
    model.col_cost_ = weights / scale * 1e3
    model.col_lower_, model.col_upper_ = np.zeros(len(sets)), np.ones(len(sets))
    model.row_lower_ = np.ones(operators)
    model.row_upper_ = np.full(operators, 1.0 if partition else highspy.kHighsInf)
    model.a_matrix_.format_ = highspy.MatrixFormat.kColwise
    model.a_matrix_.start_ = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int32)
    model.a_matrix_.index_ = np.array([p for s in sets for p in positions_of(s)], dtype=np.int32)
    model.a_matrix_.value_ = np.ones(int(sizes.sum()))
    model.integrality_ = [highspy.HighsVarType.kInteger] * len(sets)
    solver = quiet_solver(max_nodes)
    solver.passModel(model)
    guess = highspy.HighsSolution()
    taken = np.zeros(len(sets))
    taken[list(start)] = 1.0
    guess.col_value = taken.tolist()
    solver.setSolution(guess)
    solver.run()
    values = np.array(solver.getSolution().col_value)
    chosen = np.flatnonzero(values > 0.5).tolist()
    if not _covers([sets[number] for number in chosen], operators, partition):
        chosen = list(start)
    proven = solver.getModelStatus() == highspy.HighsModelStatus.kOptimal
    return SetChoice(tuple(chosen), solver.getInfo().mip_dual_bound * scale / 1e3, proven)


def _covers(sets: Sequence[Members], operators: int, partition: bool) -> bool:
    covered = 0
    for members in sets:
        if partition and covered & members:
            return False
        covered |= members
    return covered == (1 << operators) - 1


def quiet_solver(max_nodes: int) -> highspy.Highs:
    """HiGHS set up to be silent, repeatable, and exact within a count of nodes."""
    solver = highspy.Highs()  # type: ignore[no-untyped-call]
    solver.setOptionValue("output_flag", False)
    solver.setOptionValue("threads", 1)
    solver.setOptionValue("mip_rel_gap", 0.0)
    solver.setOptionValue("mip_abs_gap", 1e-7)
    solver.setOptionValue("mip_max_nodes", max_nodes)
    return solver
