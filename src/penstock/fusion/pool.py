"""The components an exact or covering algorithm chooses from, with what each costs and saves."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from penstock.fusion.components import Enumeration, enumerate_components
from penstock.fusion.costs import Costs, FusionLimits
from penstock.fusion.growth import grown_components
from penstock.fusion.members import Members, positions_of
from penstock.model.observation import Floats


@dataclass(frozen=True)
class Pool:
    """Components, lone operators first, with psi and phi of each.

    Omega of Guo and Zhou 2017, s. 5.2.
    """

    components: tuple[Members, ...]
    adaptation: Floats  # psi, weighed so that what is above beta comes last
    internal: Floats  # phi

    def positions(self, chosen: Iterable[Members]) -> list[int]:
        """Where these components stand in the pool."""
        place = {members: number for number, members in enumerate(self.components)}
        return [place[members] for members in chosen]


def component_pool(costs: Costs, limits: FusionLimits) -> Pool:
    """Every component up to a size and, if that is not all, some larger ones."""
    found = enumerate_components(costs.graph, limits.max_component_size, limits.max_pool)
    return pool_of(costs, limits, found, ())


def pool_of(
    costs: Costs, limits: FusionLimits, found: Enumeration, seeds: Sequence[Members]
) -> Pool:
    """What was enumerated, grown, and found otherwise (seeds); within the limits, or alone."""
    largest = limits.max_component_size or costs.graph.size
    grown = [] if found.complete else grown_components(costs.graph, limits.max_component_size)
    larger = [members for members in (*grown, *seeds) if members.bit_count() <= largest]
    candidates = list(dict.fromkeys([*found.components, *larger]))
    within = costs.within(candidates, limits)
    kept = [
        members
        for members, allowed in zip(candidates, within, strict=True)
        if allowed or members.bit_count() == 1
    ]
    return Pool(
        components=tuple(kept),
        adaptation=costs.weights(kept, limits),
        internal=costs.graph.internal_rows_of(kept),
    )


def without_redundant(
    costs: Costs, limits: FusionLimits, cover: Sequence[Members]
) -> list[Members]:
    """A plan from a cover: an operator in several components stays where it saves most.

    Guo and Zhou 2017, s. 5.2, discard redundant operators and do not say from which component; here
    each stays with the component it exchanges most rows with, and what falls apart is kept in
    pieces.
    """
    graph = costs.graph
    left = list(cover)
    for position in range(graph.size):
        bit = 1 << position
        holders = [n for n, members in enumerate(left) if members & bit]
        keeper = max(holders, key=lambda n: (graph.rows_between(position, left[n]), -n))
        for n in holders:
            if n != keeper:
                left[n] &= ~bit
    pieces = [piece for members in left if members for piece in graph.connected_pieces(members)]
    return [part for piece in pieces for part in _peeled(costs, limits, piece)]


def _peeled(costs: Costs, limits: FusionLimits, members: Members) -> list[Members]:
    """Drop loosely tied operators until beta holds: a part may move more state than the whole."""
    graph = costs.graph
    settled, waiting = [], [members]
    while waiting:
        piece = waiting.pop()
        if piece.bit_count() == 1 or costs.within([piece], limits)[0]:
            settled.append(piece)
            continue
        tied = {p: graph.rows_between(p, piece) for p in positions_of(piece)}
        loosest = 1 << min(tied, key=tied.__getitem__)
        settled.append(loosest)
        waiting += graph.connected_pieces(piece & ~loosest)
    return settled
