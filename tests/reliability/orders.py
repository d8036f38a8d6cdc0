"""What is disturbed, besides: what the driver orders of sources and tells their runners."""

from typing import Any

from penstock.model.sources import Streams
from penstock.spark.checkpoint.durable_files import remove_leftovers
from penstock.spark.sources.control import Controls
from penstock.spark.sources.settings import INLINE_BYTES, SourceSettings, settings_of

from .crash_points import Scenario

SOURCES, LAST = ("lights", "cars"), 4
LONG = "x" * INLINE_BYTES


class Orders(Scenario):
    """Streams are added one by one; none that was added once is forgotten."""

    def prepare(self) -> None:
        self.added = dict.fromkeys(SOURCES, 0)  # streams, for good

    def run(self) -> None:
        folder = self.directory / "sources"
        self.retried(lambda: remove_leftovers(folder))  # as who opens a checkpoint does
        streams = Streams(backend="of:Nobody", schema="n BIGINT", options={"long": LONG})
        told = self.retried(lambda: settings_of(streams, "cars", folder / "cars", 0.0))
        assert SourceSettings.from_json(told.to_json()).options == streams.backend_options
        for source in SOURCES:
            self._add(source, Controls(folder))

    def _add(self, source: str, controls: Controls) -> None:
        """As a program does that adds one stream after the other."""
        assert len(controls.of(source).read().added) >= self.added[source]
        while self.added[source] < LAST:
            wanted: Any = {f"s{number}": {} for number in range(self.added[source] + 1)}
            self.retried(lambda now=wanted: controls.order([source], added=now))  # type: ignore[misc]
            self.added[source] += 1

    def abandon(self) -> None:
        """Orders hold their lock only while they change."""

    def result(self) -> Any:
        controls = Controls(self.directory / "sources")
        return [sorted(controls.of(source).read().added) for source in SOURCES]
