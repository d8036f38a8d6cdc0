"""The key groups of attached queries, beside what is known of the queries themselves."""

import logging
from collections.abc import Sequence
from dataclasses import replace

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from penstock.errors import PenstockError
from penstock.model.observation import ComponentObservation, KeyGroups, Observation
from penstock.spark.act.placement import Placement

log = logging.getLogger(__name__)


class AttachedPlacements:
    """A placement for each query that runs, as queries come and go."""

    def __init__(self, session: SparkSession, several: bool) -> None:
        """With `several` queries, each component is named after its query too."""
        self._session, self._several = session, several
        self.current: list[Placement] = []  # always the same list, for whoever acts on it
        self._by_run: dict[str, Placement] = {}

    def follow(self, running: Sequence[StreamingQuery]) -> Sequence[Placement]:
        """The placements of the queries that run now."""
        runs = {str(query.runId): query for query in running}
        for run_id in [one for one in self._by_run if one not in runs]:
            self.current.remove(gone := self._by_run.pop(run_id))
            gone.close()
        for run_id, query in runs.items():
            if run_id not in self._by_run:
                named = query.name or f"query-{str(query.id)[:8]}"
                prefix = f"{named}/" if self._several else ""
                self._by_run[run_id] = new = Placement(self._session, query, prefix=prefix)
                new.watch()
                self.current.append(new)
        return self.current

    def close(self) -> None:
        """Wait for nothing any more."""
        self.follow([])


def with_key_groups(seen: Observation, placements: Sequence[Placement]) -> Observation:
    """An observation that tells where state lives and what it costs, as far as can be read.

    Each part of a query that holds state becomes a component of its own. Its work is counted with
    the query already, so it offers no load to whoever scales.
    """
    batches = max(1, seen.batches.count if seen.batches is not None else 1)
    for placement in placements:
        try:
            groups, traffic = placement.observe(), placement.traffic()
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
