"""The price of a fusion on Spark: foretold when it is proposed, measured once it runs."""

from collections.abc import Mapping, Sequence

from penstock.fusion.price import (
    Edge,
    Price,
    Workflow,
    foretell,
    measured_price,
    shuffle_plan,
    stage_costs,
)
from penstock.fusion.shuffles import Key
from penstock.model.observation import Observation
from penstock.model.plan_document import Group
from penstock.spark.compile.builder import BuiltTopology
from penstock.spark.compile.row_bytes import WORD, row_bytes


class FusionPrice:
    """Prices plans of one topology from what was observed of it."""

    def __init__(
        self, built: BuiltTopology, keys: Mapping[str, Key], edges: Sequence[Edge],
        once: frozenset[str], exact: frozenset[str],
    ) -> None:  # fmt: skip
        self._built, self._keys, self._edges = built, keys, tuple(dict.fromkeys(edges))
        self._once, self._exact = once, exact

    def of(
        self, window: Sequence[Observation], wanted: Sequence[Group]
    ) -> tuple[Price, Price] | None:
        """The price now, and what another plan would cost; None where too little was measured."""
        now, costs = measured_price(window), stage_costs(window)
        if now is None or costs is None:
            return None
        flow = self._flow(window)
        present = shuffle_plan(
            flow, [part.members for query in self._built.queries for part in query.fused]
        )
        other = shuffle_plan(flow, [group.operators for group in wanted])
        groups = [len(g.load_s) for one in window for g in one.key_groups.values()]
        return now, foretell(
            now, present, other, max(groups, default=1), costs, window[-1].processors
        )

    def _flow(self, window: Sequence[Observation]) -> Workflow:
        shared = {node for query in self._built.queries for node in query.sharing.shared}
        types = self._built.inspection.types
        nodes = {node for edge in self._edges for node in edge}
        sizes = {node: row_bytes(types[node]) if node in types else 5 * WORD for node in nodes}
        rows = {edge: self._rows(edge, window) for edge in self._edges}
        return Workflow(
            self._keys, self._edges, rows, sizes, shared, self._once, self._exact
        )  # fmt: skip

    def _rows(self, edge: Edge, window: Sequence[Observation]) -> float:
        """Of a batch, over a window: what its upstream emits, or what its reader gets."""
        upstream, name = edge
        sources = sum(d == name and u not in self._keys for u, d in self._edges)
        rows, batches = 0.0, 0
        for one in window:
            if one.batches is None or not one.batches.count:
                continue
            batches += one.batches.count
            for operator in one.operators:
                if operator.name == upstream:
                    rows += operator.emission_rate_per_s * one.period_s
                elif operator.name == name and upstream not in self._keys:
                    rows += operator.arrival_rate_per_s * one.period_s / sources
        return rows / batches if batches else 0.0
