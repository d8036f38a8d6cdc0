"""A bound on what fusion can save, from choosing one attribute for each operator.

In any plan each component has an attribute that all its keyed operators share, so each operator
can be given that one attribute of its key; a stream inside a component then joins operators of one
attribute. The best choice of attributes, with the adaptation cost left out, saves at least as much
as any plan: its cost is a lower bound of eq. 1 for components of every size. Its connected pieces
are components as well, often large ones that enumeration cannot reach.
"""

from dataclasses import dataclass

import highspy
import numpy as np

from penstock.fusion.graph import OperatorGraph
from penstock.fusion.members import Members
from penstock.fusion.set_program import quiet_solver

MAX_NODES = 100


@dataclass(frozen=True)
class AttributeChoice:
    """The components of the best choice found, and the proven bound on the rows saved."""

    components: tuple[Members, ...]
    most_saved_rows: float


def choose_attributes(graph: OperatorGraph, max_nodes: int = MAX_NODES) -> AttributeChoice:
    """Maximise the rows of streams whose two operators choose the same attribute of their keys.

    x[o, a] = 1 when operator o chooses a; y[s, a] <= x[u, a], y[s, a] <= x[d, a] for a stream s
    from u to d; sum over a of x[o, a] = 1; maximise sum of rows[s] y[s, a].
    """
    number = {one: n for n, one in enumerate(graph.attributes)}
    any_key = list(range(max(1, len(number))))
    choices = [[number[one] for one in own] if own else any_key for own in graph.choices]
    column = {
        pair: n for n, pair in enumerate((o, a) for o, own in enumerate(choices) for a in own)
    }
    program = _Program(len(column))
    for operator, own in enumerate(choices):
        program.add_row([column[operator, a] for a in own], [1.0] * len(own), 1.0, 1.0)
    scale = float(graph.stream_rows.max(initial=0.0)) or 1.0
    for upstream, links in enumerate(graph.links):
        for downstream, rows in links.items():
            if downstream < upstream:
                continue
            for attribute in set(choices[upstream]) & set(choices[downstream]):
                saved = program.add_column(-rows / scale)
                for end in (upstream, downstream):
                    chosen = column[end, attribute]
                    program.add_row([saved, chosen], [1.0, -1.0], -highspy.kHighsInf, 0.0)
    values, bound = program.solve(max_nodes)
    picked = [
        max((values[column[operator, attribute]], attribute) for attribute in own)[1]
        for operator, own in enumerate(choices)
    ]
    return AttributeChoice(_pieces(graph, picked), -bound * scale)


def _pieces(graph: OperatorGraph, picked: list[int]) -> tuple[Members, ...]:
    sharing: dict[int, Members] = {}
    for operator, attribute in enumerate(picked):
        sharing[attribute] = sharing.get(attribute, 0) | 1 << operator
    return tuple(p for members in sharing.values() for p in graph.connected_pieces(members))


class _Program:
    """Rows and columns gathered for HiGHS; the first columns are binary."""

    def __init__(self, binaries: int) -> None:
        self._binaries = binaries
        self._costs = [0.0] * binaries
        self._starts, self._index, self._value = [0], list[int](), list[float]()
        self._lower, self._upper = list[float](), list[float]()

    def add_column(self, cost: float) -> int:
        self._costs.append(cost)
        return len(self._costs) - 1

    def add_row(self, index: list[int], value: list[float], lower: float, upper: float) -> None:
        self._index += index
        self._value += value
        self._starts.append(len(self._index))
        self._lower.append(lower)
        self._upper.append(upper)

    def solve(self, max_nodes: int) -> tuple[list[float], float]:
        """The values of the binary columns and the proven lower bound of the cost."""
        count = len(self._costs)
        model = highspy.HighsLp()
        model.num_col_, model.num_row_ = count, len(self._lower)
        model.col_cost_ = np.array(self._costs)
        model.col_lower_, model.col_upper_ = np.zeros(count), np.ones(count)
        model.row_lower_, model.row_upper_ = np.array(self._lower), np.array(self._upper)
        model.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
        model.a_matrix_.start_ = np.array(self._starts, dtype=np.int32)
        model.a_matrix_.index_ = np.array(self._index, dtype=np.int32)
        model.a_matrix_.value_ = np.array(self._value)
        kinds = [highspy.HighsVarType.kInteger] * self._binaries
        kinds += [highspy.HighsVarType.kContinuous] * (count - self._binaries)
        model.integrality_ = kinds
        solver = quiet_solver(max_nodes)
        solver.passModel(model)
        solver.run()
        values = list(solver.getSolution().col_value)[: self._binaries]
        return values or [0.0] * self._binaries, float(solver.getInfo().mip_dual_bound)
