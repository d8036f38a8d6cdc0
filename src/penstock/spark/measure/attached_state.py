"""The key groups of attached queries, beside what is known of the queries themselves."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol

from penstock.errors import PenstockError
from penstock.model.observation import ComponentObservation, GroupTraffic, KeyGroups, Observation


class HeldState(Protocol):
    """The state of one query: its key groups, and what passes between them."""

    def observe(self) -> dict[str, KeyGroups]:
        """Run time in the newest batch, size and place of all key groups, by component."""

    def traffic(self) -> tuple[GroupTraffic, ...]:
        """Bytes between key groups of consecutive components, in the newest batch that ended."""


def with_key_groups(seen: Observation, held: Sequence[HeldState]) -> Observation:
    """An observation that tells where state lives and what it costs, as far as can be read.

    Each part of a query that holds state becomes a component of its own. Its work is counted with
    the query already, so it offers no load to whoever scales.
    """
    batches = max(1, seen.batches.count if seen.batches is not None else 1)
    for query in held:
        try:
            groups, traffic = query.observe(), query.traffic()
        except PenstockError as reason:
            seen = replace(seen, missing=(*seen.missing, f"key_groups: {reason}"))
            continue
        parts = tuple(_part(name, one, batches, seen.processors) for name, one in groups.items())
        seen = replace(
            seen, components=(*seen.components, *parts), traffic=(*seen.traffic, *traffic)
        )
    return seen


def _part(name: str, groups: KeyGroups, batches: int, processors: int) -> ComponentObservation:
    """The newest batch stands for all of the period."""
    return ComponentObservation(
        name=name,
        operators=(name,),
        arrival_rate_per_s=0.0,
        service_time_s=0.0,
        parallelism=processors,
        busy_s=0.0,
        key_groups=KeyGroups(groups.load_s * batches, groups.state_bytes, groups.node),
        tasks=len(groups.load_s),
    )
