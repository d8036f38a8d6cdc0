"""Where the key groups of attached queries live, as queries come and go."""

from collections.abc import Sequence

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from penstock.spark.act.placement import Placement


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
