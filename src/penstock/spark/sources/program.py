"""`run.streams`: what a running program may ask of its sources of many streams."""

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from penstock.errors import InvalidInput
from penstock.spark.sources.control import Control, Controls, check_limits
from penstock.spark.sources.reader import LOGS
from penstock.spark.sources.status import read_streams
from penstock.spark.sources.stream_meta import merged, understood
from penstock.spark.sources.watch import SourceWatch


class StreamsProgram:
    """Streams join and leave, and limits change, from the next batch on.

    `source` may be left out where the topology has only one source of many streams. What is asked
    stays asked: it is kept beside the checkpoint and holds after a restart.
    """

    def __init__(self, folder: Path, sources: Iterable[str]) -> None:
        self._watch = SourceWatch(folder)
        self._controls = Controls(folder)
        self._sources = tuple(sources)

    def add(self, stream: str, *, source: str | None = None, **meta: Any) -> None:
        """Let a stream join, or change what is known of one."""
        name = self._source(source)
        known = understood(stream, meta)

        def change(control: Control) -> Control:
            added = {**control.added, stream: merged(control.added.get(stream, {}), known)}
            removed = tuple(other for other in control.removed if other != stream)
            return replace(control, added=added, removed=removed)

        self._controls.of(name).update(change)

    def remove(self, stream: str, *, source: str | None = None) -> None:
        """Let a stream leave; what it has until then is still read."""

        def change(control: Control) -> Control:
            added = {other: meta for other, meta in control.added.items() if other != stream}
            removed = tuple(dict.fromkeys([*control.removed, stream]))
            return replace(control, added=added, removed=removed)

        self._controls.of(self._source(source)).update(change)

    def resume(self, stream: str, *, source: str | None = None) -> None:
        """Read a suspended stream on from where its content now begins."""
        name = self._source(source)
        suspended = [one for status in self.status(source=name) for one in status["suspended"]]
        places = [one["position"] for one in suspended if one["stream"] == stream]
        if not places:
            raise InvalidInput(f"stream {stream!r} of source {name!r} is not suspended.")
        place = (int(places[0][0]), int(places[0][1]))
        self._controls.of(name).update(
            lambda control: replace(control, resumed={**control.resumed, stream: place})
        )

    def limit(self, *, source: str | None = None, **limits: Any) -> None:
        """Change limits: strategy, lane_capacity_per_s, lane_rows, max_rows, lanes_max, ..."""
        name = self._source(source)
        known = check_limits(limits)
        self._controls.of(name).update(
            lambda control: replace(control, limits={**control.limits, **known})
        )

    def status(self, *, source: str | None = None) -> list[dict[str, Any]]:
        """What each reader of a source says: counts, lanes, queues, decisions with reasons."""
        return self._watch.statuses(self._source(source))

    def describe(self, *, source: str | None = None) -> list[dict[str, Any]]:
        """Every stream with its state, lane, rows and rate, as of the last period."""
        name = self._source(source)
        for log in sorted((self._watch.folder / name / LOGS).glob("*")):
            table = read_streams(log)
            if table is not None:
                rows: list[dict[str, Any]] = table.to_pylist()
                return rows
        return []

    def _source(self, source: str | None) -> str:
        if source is None and len(self._sources) == 1:
            return self._sources[0]
        if source not in self._sources:
            shown = ", ".join(self._sources) or "none"
            raise InvalidInput(f"source is {source!r}; sources of many streams: {shown}.")
        return source
