"""The key groups of attached queries, beside what is known of the queries themselves."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol

from penstock.errors import PenstockError
from penstock.model.observation import GroupTraffic, KeyGroups, Observation, StateObservation


class HeldState(Protocol):
    """The state of one query: its key groups, and what passes between them."""

    def observe(self) -> dict[str, KeyGroups]:
        """Run time in the newest batch, size and place of all key groups, by component."""

    def traffic(self) -> tuple[GroupTraffic, ...]:
        """Bytes between key groups of consecutive components, in the newest batch that ended."""


def with_state(seen: Observation, held: Sequence[HeldState]) -> Observation:
    """An observation that also says where state lives and what it costs, as far as can be read."""
    batches = max(1, seen.batches.count if seen.batches is not None else 1)
    for query in held:
        try:
            groups, traffic = query.observe(), query.traffic()
        except PenstockError as reason:
            seen = replace(seen, missing=(*seen.missing, f"key_groups: {reason}"))
            continue
        # The newest batch stands for all of the period.
        parts = tuple(
            StateObservation(name, KeyGroups(one.load_s * batches, one.state_bytes, one.node))
            for name, one in groups.items()
        )
        seen = replace(seen, state=(*seen.state, *parts), traffic=(*seen.traffic, *traffic))
    return seen
