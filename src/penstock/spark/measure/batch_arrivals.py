"""When the rows of a batch arrived at the outer sources, known while the batch is still written.

Spark writes the offsets of a batch before it runs it, so a writer can pass arrivals on to the
channels it feeds. Rows that came through channels bring theirs along; so latency is known end to
end, over any number of queries, without a column.

Through a loop the arrivals behind a batch come back to it with every round, all of them each time,
while of the rows only some do. So behind the rows of a loop there are never more arrivals than
rows, and what came long ago is forgotten as its rows leave.
"""

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlparse

from penstock.model.arrivals import Arrivals
from penstock.spark.channels.entries import merged
from penstock.spark.measure.source_lag import rows_before
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
    foreign: tuple[dict[str, Any], ...] = ()  # of sources that are not Penstock's own


class BatchArrivals:
    """Arrivals of the batches of one query."""

    def __init__(
        self,
        checkpoint: str,
        sources: Mapping[str, RunningSource],
        looped: Collection[str] = (),
    ) -> None:
        """`looped` are the sources that bring back what derives from this query's own rows."""
        self._offsets = Path(unquote(urlparse(checkpoint).path)) / "offsets"
        self._sources, self._looped = sources, frozenset(looped)
        self._newest: tuple[int, Arrivals] | None = None
        self._passed_on = -1

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
            for part in self._of_source(name, before.get(name), last)
        ) + _of_others(start, end)

    def _of_source(self, name: str, first: Offset | None, last: Offset) -> list[Arrivals]:
        source = self._sources[name]
        parts = source.arrivals(first, last)
        if name not in self._looped:
            return parts
        read = source.rows_at(last) - (0 if first is None else source.rows_at(first))
        return _rows_of_a_loop(parts, read)

    def passed_on(self, batch_id: int) -> bool:
        """Whether the arrivals of a batch went on with rows that it published."""
        return self._passed_on >= batch_id

    def pass_on(self, batch_id: int) -> Arrivals | None:
        """What goes along with the rows that a batch publishes."""
        self._passed_on = batch_id
        return self.summary(batch_id)

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
        foreign: list[dict[str, Any]] = []
        for offset in sources:
            name = source_of(offset)
            if name is None and isinstance(offset, dict):
                foreign.append(offset)
            known = None if name is None else self._sources.get(name)
            if name is None or known is None:
                continue
            if name not in ends or known.rows_at(offset) < known.rows_at(ends[name]):
                ends[name] = offset
        return Offsets(ends, formed_s, tuple(foreign))


def _of_others(start: Offsets | None, end: Offsets) -> tuple[Arrivals, ...]:
    """Rows of sources that keep no arrival times came since the batch before was formed.

    Where offsets do not count rows, one that moved on stands for one row.
    """
    if start is None or len(start.foreign) != len(end.foreign):
        return ()
    first_s = min(start.formed_s, end.formed_s)  # the machine's clock may have been set back
    return tuple(
        Arrivals(max(1, rows_before(last) - rows_before(first)), first_s, end.formed_s)
        for first, last in zip(start.foreign, end.foreign, strict=True)
        if last != first
    )


def _rows_of_a_loop(parts: Sequence[Arrivals], read: int) -> list[Arrivals]:
    """At most one arrival behind each row, spread evenly around their mean."""
    behind = sum(part.rows for part in parts)
    share = min(1.0, read / behind) if behind > 0 else 1.0
    return [
        replace(
            part,
            rows=part.rows * share,
            first_s=max(part.first_s, 2 * part.mean_s - part.last_s),
            middle_s=part.mean_s,
        )
        for part in parts
    ]
