"""Where the one shuffle of each fused component goes."""

import networkx as nx

from penstock.model.topology import SinkBinding, Topology
from penstock.spark.compile.assembler import Division
from penstock.spark.compile.fused import Fused
from penstock.spark.compile.inspection import Inspection
from penstock.spark.compile.sharing import Sharing, plan_sharing
from penstock.spark.handles.analysed_plan import Watermark


def divisions(
    topology: Topology,
    inspection: Inspection,
    sinks: tuple[SinkBinding, ...],
    fused: tuple[Fused, ...],
) -> tuple[tuple[Sharing, Division], ...]:
    """Where shuffles may go, the fewest first.

    Rows that several consumers share cross an exchange anyway. Where no watermark follows it, or
    the same one for all consumers, it can divide by the component's key and be the only one.
    Otherwise it is left out if the work below it is cheap enough to be done for each consumer.
    """
    sharing = plan_sharing(topology, inspection, sinks, frozenset())
    members = frozenset(name for component in fused for name in component.members)
    entering = {edge: component.key for component in fused for edge in component.entering}
    ways = []
    if not members & inspection.watermarked:
        lifted, saved = _lifted(topology, sharing, fused)
        below = {edge: key for edge, key in entering.items() if edge not in saved}
        if lifted:
            ways.append((sharing, Division(below, lifted, members=members)))
    else:
        alike = _same_watermark(topology, inspection, sharing, fused)
        lifted = {node: component.key for node, (component, _) in alike.items()}
        below = {edge: key for edge, key in entering.items() if edge[0] not in lifted}
        if lifted:
            watermarks = {node: watermark for node, (_, watermark) in alike.items()}
            ways.append((sharing, Division(below, lifted, watermarks, members)))
    plain = Division(entering, members=members)
    cheap = _cheap_to_repeat(topology, inspection, sharing, fused)
    if cheap:
        ways.append((plan_sharing(topology, inspection, sinks, cheap), plain))
    return (*ways, (sharing, plain))


def _lifted(
    topology: Topology, sharing: Sharing, fused: tuple[Fused, ...]
) -> tuple[dict[str, tuple[str, ...]], set[tuple[str, str]]]:
    """Shared nodes that all rows of a component pass, with its key, and the edges this saves."""
    graph = topology.graph()
    lifted: dict[str, tuple[str, ...]] = {}
    saved: set[tuple[str, str]] = set()
    for component in fused:
        heads = {upstream for upstream, _ in component.entering}
        above = [
            node
            for node in sharing.shared
            if node not in lifted
            and all(node == head or node in nx.ancestors(graph, head) for head in heads)
        ]
        if above:
            nearest = max(above, key=lambda node: len(nx.ancestors(graph, node)))
            lifted[nearest] = component.key
            saved |= component.entering
    return lifted, saved


def _same_watermark(
    topology: Topology, inspection: Inspection, sharing: Sharing, fused: tuple[Fused, ...]
) -> dict[str, tuple[Fused, Watermark]]:
    """Shared nodes whose consumers all define one watermark, and a component that reads them."""
    graph, timed = topology.graph(), inspection.watermarked
    stateful = {name for name, analysis in inspection.operators.items() if analysis.stateful}
    alike: dict[str, tuple[Fused, Watermark]] = {}
    for component in fused:
        for node in {upstream for upstream, _ in component.entering}:
            source = topology.find_source(node)
            routed = source is not None and source.route is not None
            if node not in sharing.shared or node in timed or routed or topology.variants:
                continue
            defined = {
                inspection.operators[name].watermarks.get(node)
                for name in graph.successors(node)
                if name in inspection.operators
                and (name in timed or {name, *nx.descendants(graph, name)} & stateful)
            }
            watermark = defined.pop() if len(defined) == 1 else None
            if watermark is not None and node not in alike:
                alike[node] = (component, watermark)
    return alike


def _cheap_to_repeat(
    topology: Topology, inspection: Inspection, sharing: Sharing, fused: tuple[Fused, ...]
) -> frozenset[str]:
    """Shared nodes above a component whose rows come from SQL alone, or straight from a source."""
    graph = topology.graph()
    heads = {upstream for component in fused for upstream, _ in component.entering}
    repeated: set[str] = set()
    for node in sharing.shared:
        below = {node, *nx.ancestors(graph, node)}
        opaque = any(
            name in inspection.operators and inspection.operators[name].opaque for name in below
        )
        if not opaque and any(head == node or node in nx.ancestors(graph, head) for head in heads):
            repeated |= below
    return frozenset(repeated)
