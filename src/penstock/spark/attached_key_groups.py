"""The key groups of an attached query, beside what its measurer says of it."""

from dataclasses import replace

from penstock.control.ports import Measurer
from penstock.errors import PenstockError
from penstock.model.observation import ComponentObservation, KeyGroups, Observation
from penstock.spark.placement import Placement


class WithKeyGroups:
    """A Measurer whose observations tell where state lives and what it costs.

    Each part of the query that holds state becomes a component of its own. Its work is counted with
    the query already, so it offers no load to whoever scales.
    """

    def __init__(self, measurer: Measurer, placement: Placement) -> None:
        self._measurer, self._placement = measurer, placement

    def observe(self) -> Observation | None:
        """The measurer's observation with key groups; without them where they cannot be read."""
        seen = self._measurer.observe()
        if seen is None:
            return None
        try:
            groups, traffic = self._placement.observe(), self._placement.traffic()
        except PenstockError as reason:
            return replace(seen, missing=(*seen.missing, f"key_groups: {reason}"))
        batches = max(1, seen.batches.count if seen.batches is not None else 1)
        parts = tuple(_part(name, one, batches, seen.processors) for name, one in groups.items())
        return replace(seen, components=(*seen.components, *parts), traffic=traffic)


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
