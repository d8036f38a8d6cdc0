"""Another plan than the present one, if it is worth a restart: the slow loop's decision."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from penstock.fusion.costs import Costs, FusionLimits, rule_for
from penstock.fusion.graph import OperatorGraph
from penstock.fusion.members import Members, members_of, positions_of
from penstock.fusion.planner import Algorithm, decide_fusion
from penstock.fusion.rebalancing import TOLERANCE
from penstock.fusion.statistics import MeasuredGraph
from penstock.model.decision import Decision
from penstock.model.plan_document import Group

LEAST_GAIN = 0.05  # share of the present cost below which a plan is left as it is


@dataclass(frozen=True)
class ProposalRules:
    """How state moves are priced and bounded, and what makes another plan worth a restart."""

    beta: float | None = None  # most rows of state that a component may move within the horizon
    capacity_rows: float | None = None  # of an instance in a window; None: from the rows seen
    tolerance: float = TOLERANCE
    least_gain: float = LEAST_GAIN
    spread_known: bool = True  # whether enough was seen to say how many key groups have work


@dataclass(frozen=True)
class Proposal:
    """Components of more than one operator, and the cost in rows of this plan and the present."""

    groups: tuple[Group, ...]
    present_cost: float
    cost: float

    @property
    def gain(self) -> float:
        """The share of the present cost that the plan saves."""
        return 1 - self.cost / self.present_cost if self.present_cost > 0 else 0.0


def propose_fusion(
    measured: MeasuredGraph,
    present: Iterable[Sequence[str]],
    algorithm: Algorithm = "mwsc",
    rules: ProposalRules = ProposalRules(),
) -> Decision[Proposal]:
    """The plan of least cost for the statistics, or the present one if it saves too little.

    Both costs count the rows that are shuffled whatever the plan.
    """
    graph = measured.graph
    costs = Costs(graph, rule_for(graph, rules.capacity_rows, rules.tolerance))
    min_groups = max(1, measured.slots) if rules.spread_known else 1
    limits = FusionLimits(beta=rules.beta, min_groups=min_groups)
    place = {name: number for number, name in enumerate(graph.names)}
    now = _partition(graph, [[place[o] for o in part if o in place] for part in present])
    before = costs.total(now) + measured.entering_rows
    decision = decide_fusion(costs, algorithm, limits)
    notes = (*decision.reasons, *_too_few(costs, limits))
    groups = tuple(
        Group(measured.between(part.operators), part.key)
        for part in decision.plan.components
        if len(part.operators) > 1
    )
    proposal = Proposal(groups, before, decision.plan.cost + measured.entering_rows)
    kept = tuple(
        Group(
            measured.between([graph.names[p] for p in positions_of(members)]),
            graph.component_key(members),
        )
        for members in now
        if members.bit_count() > 1
    )
    same = _shared(graph, groups) == _shared(graph, kept)
    if proposal.gain < rules.least_gain or same:
        reason = (
            "plan kept: no other operators would do better to share a shuffle"
            if same
            else "plan kept: the best other plan would save "
            f"{max(0.0, proposal.gain):.1%} of its cost"
        )
        return Decision(Proposal(kept, before, before), (reason, *notes))
    reason = f"expected gain {proposal.gain:.1%}: cost {before:.6g} -> {proposal.cost:.6g} rows"
    return Decision(proposal, (reason, *notes), decision.infeasible)


def _too_few(costs: Costs, limits: FusionLimits) -> Iterator[str]:
    """Operators that are not fused because their common key would leave processors without work."""
    graph = costs.graph
    for up, down in zip(graph.upstream.tolist(), graph.downstream.tolist(), strict=True):
        both = members_of([up, down])
        if graph.shared_key_bits(both) and costs.too_few_groups(both, limits):
            yield (
                f"{graph.names[up]} + {graph.names[down]} are not fused by "
                f"({', '.join(graph.component_key(both))}): {costs.busy_groups(both)} of its key "
                f"groups have work, for {limits.min_groups} processors"
            )


def _partition(graph: OperatorGraph, parts: list[list[int]]) -> list[Members]:
    named = [members_of(part) for part in parts if part]
    covered = 0
    for members in named:
        covered |= members
    alone = [1 << p for p in range(graph.size) if not covered >> p & 1]
    # What the query runs in one component need not be joined by a stream; the cost model counts
    # only streams, so each joined piece is a component of its own to it.
    return [piece for members in named for piece in graph.connected_pieces(members)] + alone


def _shared(graph: OperatorGraph, groups: Sequence[Group]) -> set[tuple[frozenset[str], object]]:
    """Which operators with keys share a shuffle, and by what."""
    keyed = {name for name, key in zip(graph.names, graph.keys, strict=True) if key}
    return {(frozenset(keyed.intersection(one.operators)), one.key) for one in groups}
