"""The graph of a scenario: who feeds whom, in which order, and how rows divide at each exit."""

from dataclasses import dataclass

import networkx as nx
import numpy as np
from numpy.typing import NDArray

from penstock.errors import InvalidInput
from penstock.sim.scenario import OperatorSpec, Scenario

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

MOST_ROWS_PER_S = 1e12
SINK = ""  # target of rows that leave as results


@dataclass(frozen=True)
class Exit:
    """Where the rows of a source or operator go.

    Each target of `copies` gets every row. `split` divides them: each row goes to at most one of
    its targets; a row left over is a result, unless some target got a copy of it.
    """

    copies: tuple[str, ...]
    split: tuple[tuple[str, float], ...]

    def divide(self, rows: Ints, rng: np.random.Generator) -> list[tuple[str, Ints]]:
        """Rows for each target, entry by entry."""
        parts = [(target, rows) for target in self.copies]
        left, left_share = rows, 1.0
        for target, share in self.split:
            odds = min(1.0, share / left_share) if left_share > 0 else 1.0
            taken = rng.binomial(left, odds)
            parts.append((target, taken))
            left, left_share = left - taken, left_share - share
        if not self.copies:
            parts.append((SINK, left))
        return parts

    def divide_one(self, rows: int, rng: np.random.Generator) -> list[tuple[str, int]]:
        """The same for a single job."""
        parts = [(target, rows) for target in self.copies]
        left, left_share = rows, 1.0
        for target, share in self.split:
            odds = min(1.0, share / left_share) if left_share > 0 else 1.0
            taken = int(rng.binomial(left, odds)) if left else 0
            parts.append((target, taken))
            left, left_share = left - taken, left_share - share
        if not self.copies:
            parts.append((SINK, left))
        return parts


def multiplied(rows: Ints, selectivity: float, rng: np.random.Generator) -> Ints:
    """Rows out: rows * selectivity, rounded up or down at random so that the mean is exact."""
    if selectivity == 1.0:
        return rows
    exact = rows * selectivity
    if selectivity < 1.0:
        return np.asarray(rng.binomial(rows, selectivity), dtype=np.int64)
    whole = np.floor(exact)
    more = rng.random(len(rows)) < exact - whole
    return np.asarray(whole + more, dtype=np.int64)


class Network:
    """The checked graph of a scenario."""

    def __init__(self, scenario: Scenario) -> None:
        self.operators = {operator.name: operator for operator in scenario.operators}
        self.sources = tuple(source.name for source in scenario.sources)
        self._check_names(scenario)
        graph = nx.DiGraph()
        graph.add_nodes_from([*self.sources, *self.operators])
        for operator in scenario.operators:
            graph.add_edges_from((up.name, operator.name) for up in operator.upstreams)
        self.exits = {name: self._exit(name) for name in graph.nodes}
        self.has_loop = not nx.is_directed_acyclic_graph(graph)
        self._check_paths(graph, scenario)
        self._check_rates(scenario)
        self.groups = self._grouped(graph)
        self.order = tuple(name for group in self.groups for name in group)
        self.loops = frozenset(
            group for group in self.groups if len(group) > 1 or graph.has_edge(group[0], group[0])
        )

    def component_of(self, operator: OperatorSpec) -> str:
        """The name of the component an operator runs in."""
        return operator.component or operator.name

    def component_edges(self) -> tuple[tuple[str, str], ...]:
        """Edges between components, upstream first."""
        edges = dict[tuple[str, str], None]()
        for operator in self.operators.values():
            for upstream in operator.upstreams:
                if upstream.name in self.operators:
                    before = self.component_of(self.operators[upstream.name])
                    if before != self.component_of(operator):
                        edges[before, self.component_of(operator)] = None
        return tuple(edges)

    def _check_names(self, scenario: Scenario) -> None:
        if not scenario.sources:
            raise InvalidInput(f"scenario {scenario.name!r} has no source; add one.")
        if not scenario.operators:
            raise InvalidInput(f"scenario {scenario.name!r} has no operator; add one.")
        names = [*self.sources, *(operator.name for operator in scenario.operators)]
        for name in names:
            if not name:
                raise InvalidInput("a source or operator has an empty name; give it one.")
            if names.count(name) > 1:
                raise InvalidInput(f"the name {name!r} is used more than once; names are unique.")
        for operator in scenario.operators:
            for upstream in operator.upstreams:
                if upstream.name not in names:
                    raise InvalidInput(
                        f"operator {operator.name!r}: from {upstream.name!r} is unknown; known: "
                        f"{', '.join(names)}."
                    )

    def _exit(self, name: str) -> Exit:
        copies, split = list[str](), list[tuple[str, float]]()
        for operator in self.operators.values():
            for upstream in operator.upstreams:
                if upstream.name == name and upstream.share == 1.0:
                    copies.append(operator.name)
                elif upstream.name == name:
                    split.append((operator.name, upstream.share))
        total = sum(share for _, share in split)
        if total > 1 + 1e-9:
            raise InvalidInput(
                f"the shares of {name!r} add up to {total:g}; those below 1 may add up to 1."
            )
        if name in self.operators and self.operators[name].sink:
            copies.append(SINK)
        return Exit(tuple(copies), tuple(split))

    def _check_paths(self, graph: "nx.DiGraph[str]", scenario: Scenario) -> None:
        for source in self.sources:
            if graph.out_degree(source) == 0:
                raise InvalidInput(f"source {source!r} feeds no operator; connect or remove it.")
        fed = {node for source in self.sources for node in nx.descendants(graph, source)}
        for operator in scenario.operators:
            if operator.name not in fed:
                raise InvalidInput(f"operator {operator.name!r} is fed by no source.")
        if not self.has_loop:
            return
        edges = nx.find_cycle(graph)
        path = " -> ".join([edges[0][0], *(edge[1] for edge in edges)])
        for operator in scenario.operators:
            back = any(nx.has_path(graph, operator.name, up.name) for up in operator.upstreams)
            if back and operator.dispatch != "shared":
                raise InvalidInput(
                    f"operator {operator.name!r}: dispatch is {operator.dispatch!r}; operators on "
                    "a loop are simulated with shared queues only."
                )
        if scenario.sharing == "time":
            raise InvalidInput(f"operators form the loop {path}; loops need sharing = 'space'.")
        gain = float(np.abs(np.linalg.eigvals(self._flow_matrix())).max())
        if gain >= 1 - 1e-9:
            raise InvalidInput(
                f"operators form the loop {path} that returns {gain:g} rows for each row; it must "
                "be below 1, or rows pile up for ever."
            )

    def _check_rates(self, scenario: Scenario) -> None:
        """Refuse rates that cannot be counted."""
        names = list(self.operators)
        entry_per_s = np.zeros(len(names))
        for source in scenario.sources:
            exit_, peak_per_s = self.exits[source.name], source.profile.peak_rate_per_s
            if peak_per_s > MOST_ROWS_PER_S:
                raise InvalidInput(
                    f"source {source.name!r}: rate reaches {peak_per_s:g} rows a second; at most "
                    f"{MOST_ROWS_PER_S:g} are simulated."
                )
            for target, share in [*((copy, 1.0) for copy in exit_.copies), *exit_.split]:
                entry_per_s[names.index(target)] += share * peak_per_s
        rates_per_s = np.linalg.solve(np.eye(len(names)) - self._flow_matrix(), entry_per_s)
        for name, rate_per_s in zip(names, rates_per_s.tolist(), strict=True):
            out_per_s = rate_per_s * max(1.0, self.operators[name].selectivity)
            if not out_per_s <= MOST_ROWS_PER_S:
                raise InvalidInput(
                    f"operator {name!r}: selectivity lets it reach {out_per_s:g} rows a second; "
                    f"at most {MOST_ROWS_PER_S:g} are simulated."
                )

    def work_s(self, source: str) -> float:
        """Processor-seconds that a row of a source costs in the mean, over all operators."""
        names, exit_ = list(self.operators), self.exits[source]
        entered = np.zeros(len(names))
        for target, share in [*((copy, 1.0) for copy in exit_.copies), *exit_.split]:
            entered[names.index(target)] += share
        visits = np.linalg.solve(np.eye(len(names)) - self._flow_matrix(), entered)
        return float(
            sum(v * o.service.mean_s for v, o in zip(visits, self.operators.values(), strict=True))
        )

    def _flow_matrix(self) -> Floats:
        """Rows that reach operator i for each row that enters operator j."""
        names = list(self.operators)
        flow = np.zeros((len(names), len(names)))
        for column, name in enumerate(names):
            exit_, out = self.exits[name], self.operators[name].selectivity
            for target, share in [*((copy, 1.0) for copy in exit_.copies), *exit_.split]:
                if target != SINK:
                    flow[names.index(target), column] += share * out
        return flow

    def _grouped(self, graph: "nx.DiGraph[str]") -> tuple[tuple[str, ...], ...]:
        """Operators with upstreams first, those on a loop together; declared order breaks ties."""
        rank = {name: position for position, name in enumerate(self.operators)}
        condensed = nx.condensation(graph.subgraph(self.operators))
        members = {
            group: tuple(sorted(condensed.nodes[group]["members"], key=rank.__getitem__))
            for group in condensed.nodes
        }
        order = nx.lexicographical_topological_sort(
            condensed, key=lambda group: rank[members[group][0]]
        )
        return tuple(members[group] for group in order)
