"""Which nodes of a topology run once per batch for all of their consumers."""

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

import networkx as nx

from penstock.fusion.reading import FORMATS
from penstock.model.topology import SinkBinding, Topology
from penstock.spark.compile.cheaper_forms import on_the_way
from penstock.spark.compile.inspection import Inspection
from penstock.spark.handles.analysed_plan import OperatorAnalysis


@dataclass(frozen=True)
class Sharing:
    """How often each node behind some sinks runs, and where the shared exchanges are."""

    shared: tuple[str, ...]
    copies: dict[str, int]
    unshared: frozenset[str] = frozenset()  # could be shared, and runs for each consumer instead
    consumers: Mapping[str, int] = field(default_factory=dict)  # of each that is shared

    @property
    def repeated(self) -> tuple[str, ...]:
        """Nodes whose work Spark does more than once per batch."""
        return tuple(sorted(name for name, copies in self.copies.items() if copies > 1))


def plan_sharing(
    topology: Topology, inspection: Inspection, sinks: tuple[SinkBinding, ...],
    unshared: frozenset[str],
) -> Sharing:  # fmt: skip
    """Follow the consumers upstream from the sinks; a node needed twice is shared if it may be.

    Nodes in `unshared` are not: their work is done for each consumer.
    """
    graph = topology.graph()
    upstreams = {operator.name: operator.upstreams for operator in topology.operators}
    either = on_the_way(topology)  # two branches of which one has rows
    stateful = {name for name, analysis in inspection.operators.items() if analysis.stateful}
    # All sinks of a node are handed the same rows, so together they are one consumer of it.
    needed = Counter({sink.upstream for sink in sinks})
    shared: dict[str, int] = {}
    others = {o.name: len(o.other_forms) for o in topology.operators}
    order = [node for node in nx.topological_sort(graph) if node not in topology.sink_names]
    for node in reversed(order):
        if needed[node] > 1 and node not in stateful and node not in unshared | either:
            timed = node in inspection.watermarked
            hides_watermark = timed and stateful & nx.descendants(graph, node)
            if not hides_watermark and not stateful & nx.ancestors(graph, node):
                shared[node] = needed[node]
                needed[node] = 1
        forms = 1 + others.get(node, 0)
        for upstream in upstreams.get(node, ()):
            needed[upstream] += forms * needed[node]
    return Sharing(
        tuple(sorted(shared)), {node: n for node, n in needed.items() if n > 0}, unshared, shared
    )


def read_again(
    topology: Topology, inspection: Inspection, sources: Collection[str]
) -> frozenset[str]:
    """Some sources, and what SQL alone makes of their rows.

    That is done for each consumer, on the columns that it uses.
    """
    graph = topology.graph()
    cheap = set(sources) | {
        operator.name
        for operator in topology.operators
        if _is_sql_alone(inspection.operators[operator.name])
        and operator.key is None
        and operator.route is None
    }
    return frozenset(node for node in cheap if nx.ancestors(graph, node) <= cheap)


def _is_sql_alone(analysis: OperatorAnalysis) -> bool:
    return not (analysis.opaque or analysis.stateful or analysis.shuffles)


def by_format(inspection: Inspection) -> frozenset[str]:
    """Sources of files whose readers do not touch the columns that they do not use."""
    return frozenset(
        name for name, scan in inspection.files.items() if FORMATS[scan.format].by_column
    )
