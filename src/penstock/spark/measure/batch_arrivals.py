"""When the rows of a batch arrived at the outer sources, known while the batch is still written.

Spark writes the offsets of a batch before it runs it, so a writer can tell the channels it feeds.
Rows that came through channels bring along what those say; so latency is known end to end, over
any number of queries, without a column.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlparse

import numpy as np

from penstock.errors import InvalidInput
from penstock.model.arrivals import Arrivals
from penstock.spark.channels.entries import merged, share
from penstock.spark.channels.log import Channel
from penstock.workloads.generator import Generator

MOST_ROWS = 10_000  # whose arrivals are computed one by one
BATCHES_BACK = 20  # results of a batch without rows are told with the last one that had some


@dataclass(frozen=True)
class Offsets:
    """Spark's record of a batch: how far each source goes, by its name, and when it was formed."""

    rows: dict[str, int]
    formed_s: float
    # Of sources of many streams: the entry of their log, and when its rows arrived.
    many: dict[str, tuple[int, list[list[float]]]] = field(default_factory=dict)


class BatchArrivals:
    """Arrivals of the batches of one query."""

    def __init__(
        self,
        checkpoint: str,
        streams: Mapping[str, Generator],
        epoch_s: float,
        channels: Mapping[str, tuple[Path, str]],
    ) -> None:
        self._offsets = Path(unquote(urlparse(checkpoint).path)) / "offsets"
        self._streams = streams
        self._epoch_s = epoch_s
        self._channels = {name: Channel(path) for name, (path, _) in channels.items()}
        self._newest: tuple[int, Arrivals] | None = None
        self._first = {
            name: self._channels[name].register(reader) for name, (_, reader) in channels.items()
        }

    def of(self, batch_id: int) -> tuple[Arrivals, ...]:
        """What each source contributed to a batch; empty where that is not known."""
        end = self.offsets(batch_id)
        if end is None:
            return ()
        start = self.offsets(batch_id - 1) if batch_id else None
        found = []
        for name, last in end.rows.items():
            first = start.rows.get(name) if start is not None else None
            first = self._first.get(name, 0) if first is None else first
            if last > first:
                found += self._between(name, first, last)
        for name, (seq, arrived) in end.many.items():
            if start is None or start.many.get(name, (0, []))[0] != seq:
                found += [Arrivals(*map(float, part)) for part in arrived]
        return tuple(found)

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
        rows: dict[str, int] = {}
        for source in sources:
            name = _name(source)
            if name is not None:
                # A source read twice stands twice; the one behind counts.
                rows[name] = min(int(source["row"]), rows.get(name, int(source["row"])))
        many = {
            str(source["source"]): (int(source["seq"]), source["arrived"])
            for source in sources
            if isinstance(source, dict) and {"source", "seq", "arrived"} <= source.keys()
        }
        return Offsets(rows, formed_s, many)

    def _between(self, name: str, first: int, last: int) -> list[Arrivals]:
        if name in self._channels:
            try:
                entries = self._channels[name].entries(first, last)
            except InvalidInput:  # an earlier batch, whose rows all readers have passed
                return []
            parts = (share(entry, first, last) for entry in entries)
            return [part for part in parts if part is not None]
        if name not in self._streams:
            return []
        step = max(1, (last - first) // MOST_ROWS)
        rows = np.append(np.arange(first, last - 1, step), last - 1)
        at_s = self._epoch_s + self._streams[name].rate.arrival_s(rows)
        return [Arrivals(last - first, float(at_s[0]), float(at_s[-1]), float(at_s.mean()))]


def _name(offset: Any) -> str | None:
    if not isinstance(offset, dict) or "row" not in offset:
        return None
    name = offset.get("channel", offset.get("stream"))
    return None if name is None else str(name)
