"""`run.streams`: what a running program may ask of its sources of many streams."""

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from penstock.errors import InvalidInput
from penstock.spark.sources.control import (
    Control,
    check_limits,
    check_meta,
    read_control,
    write_control,
)
from penstock.spark.sources.reader import LOGS
from penstock.spark.sources.status import read_streams
from penstock.spark.sources.watch import SourceWatch


class StreamsProgram:
    """Streams join and leave, and limits change, from the next batch on.

    `source` may be left out where the topology has only one source of many streams. What is asked
    stays asked: it is kept beside the checkpoint and holds after a restart.
    """

    def __init__(self, folder: Path, sources: Iterable[str]) -> None:
        self._watch = SourceWatch(folder)
        self._sources = tuple(sources)

    def add(self, stream: str, *, source: str | None = None, **meta: Any) -> None:
        """Let a stream join, or change what is known of one."""
        name = self._source(source)
        known = check_meta(stream, meta)
        control = self._read(name)
        added = {**control.added, stream: {**control.added.get(stream, {}), **known}}
        removed = tuple(other for other in control.removed if other != stream)
        self._write(name, replace(control, added=added, removed=removed))

    def remove(self, stream: str, *, source: str | None = None) -> None:
        """Let a stream leave; what it has until then is still read."""
        name = self._source(source)
        control = self._read(name)
        added = {other: meta for other, meta in control.added.items() if other != stream}
        removed = tuple(dict.fromkeys([*control.removed, stream]))
        self._write(name, replace(control, added=added, removed=removed))

    def resume(self, stream: str, *, source: str | None = None) -> None:
        """Read a suspended stream on from where its content now begins."""
        name = self._source(source)
        for status in self.status(source=name):
            for told in status["suspended"]:
                if told["stream"] == stream:
                    control = self._read(name)
                    place = (int(told["position"][0]), int(told["position"][1]))
                    self._write(name, replace(control, resumed={**control.resumed, stream: place}))
                    return
        raise InvalidInput(f"stream {stream!r} of source {name!r} is not suspended.")

    def limit(self, *, source: str | None = None, **limits: Any) -> None:
        """Change limits: strategy, lane_capacity_per_s, lane_rows, max_rows, lanes_max, ..."""
        name = self._source(source)
        known = check_limits(limits)
        control = self._read(name)
        self._write(name, replace(control, limits={**control.limits, **known}))

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

    def _read(self, source: str) -> Control:
        return read_control(self._watch.folder / source)

    def _write(self, source: str, control: Control) -> None:
        write_control(self._watch.folder / source, control)
