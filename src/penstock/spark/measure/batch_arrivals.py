"""When the rows of a batch arrived at the outer sources, known while the batch is still written.

Spark writes the offsets of a batch before it runs it, so a writer can pass arrivals on to the
channels it feeds. Rows that came through channels bring theirs along; so latency is known end to
end, over any number of queries, without a column.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlparse

from penstock.model.arrivals import Arrivals
from penstock.spark.channels.entries import merged
from penstock.spark.sources.offsets import Offset, source_of
from penstock.spark.sources.running.source import RunningSource

BATCHES_BACK = 20  # results of a batch without rows are reported with the last one that had some


@dataclass(frozen=True)
class Offsets:
    """Spark's record of a batch: how far each source of ours goes, and when it was formed.

    A source that is read twice stands twice; the one that is behind counts.
    """

    ends: dict[str, Offset]
    formed_s: float


class BatchArrivals:
    """Arrivals of the batches of one query."""

    def __init__(
        self,
        checkpoint: str,
        sources: Mapping[str, RunningSource],
    ) -> None:
        self._offsets = Path(unquote(urlparse(checkpoint).path)) / "offsets"
        self._sources = sources
        self._newest: tuple[int, Arrivals] | None = None

    def of(self, batch_id: int) -> tuple[Arrivals, ...]:
        """What each source contributed to a batch; empty where that is not known."""
        end = self.offsets(batch_id)
        if end is None:
            return ()
        start = self.offsets(batch_id - 1) if batch_id else None
        before = {} if start is None else start.ends
        return tuple(
            part
            for name, last in end.ends.items()
            for part in self._sources[name].arrivals(before.get(name), last)
        )

    def summary(self, batch_id: int) -> Arrivals | None:
        """All sources together, of this batch or the last one that had rows."""
        newest = self._newest
        if newest is not None and newest[0] < batch_id and merged(self.of(batch_id)) is None:
            return newest[1]
        for batch in range(batch_id, max(-1, batch_id - BATCHES_BACK), -1):
            found = merged(self.of(batch))
            if found is not None:
                self._newest = (batch, found)
                return found
        return None

    def offsets(self, batch_id: int) -> Offsets | None:
        """As Spark wrote them; None if it did not, or in another form."""
        try:
            text = (self._offsets / str(batch_id)).read_text(encoding="utf-8")
            metadata, *sources = [json.loads(line) for line in text.splitlines()[1:] if line != "-"]
            formed_s = float(metadata["batchTimestampMs"]) / 1e3
        except (OSError, ValueError, KeyError, TypeError):
            return None
        ends: dict[str, Offset] = {}
        for offset in sources:
            name = source_of(offset)
            known = None if name is None else self._sources.get(name)
            if name is None or known is None:
                continue
            if name not in ends or known.rows_at(offset) < known.rows_at(ends[name]):
                ends[name] = offset
        return Offsets(ends, formed_s)
