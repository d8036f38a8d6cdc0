"""Many streams as one source in a run, known by what their runner reports."""

import json
from contextlib import closing
from dataclasses import replace
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from penstock.errors import Unavailable
from penstock.model.arrivals import Arrivals
from penstock.model.sources import Streams
from penstock.model.topology import Source
from penstock.spark.sources.backends.classes import backend_class, make_backend
from penstock.spark.sources.frames import read_streams
from penstock.spark.sources.offsets import Offset
from penstock.spark.sources.running.generator import few
from penstock.spark.sources.running.source import Opening, RunningSource
from penstock.spark.sources.watch import SourceWatch, waiting_rows

SAMPLED_STREAMS = 5


class RunningStreams(RunningSource):
    """Counts come from the status that the source's runner writes at each batch."""

    orders = frozenset(
        {
            "route_tasks",
            "interval_s",
            "shed",
            "cheaper",
            "forms",
            "added",
            "removed",
            "resumed",
            "limits",
        }
    )
    counts_arrivals = True
    ends_at_once = True

    def __init__(
        self, source: Source, streams: Streams, epoch_s: float, watch: SourceWatch | None
    ) -> None:
        super().__init__(source)
        self._streams, self._epoch_s, self._watch = streams, epoch_s, watch

    @property
    def learns_capacity(self) -> bool:
        """Where the user names none."""
        return self._streams.admission.lane_capacity is None

    @property
    def identity(self) -> str:
        """The system, the place in it and the format, as positions depend on them."""
        if self._streams.backend is None:
            return self._streams.identity
        kind = self._streams.kind
        where = backend_class(kind).identity(self._streams.backend_options)
        return json.dumps({"backend": kind, "where": where}, sort_keys=True)

    def open(self, session: SparkSession, opening: Opening) -> DataFrame:
        """An entry of the admission log is the offset."""
        return read_streams(
            self.name, self._streams, session, self._epoch_s, self._source.route,
            opening.options(self.name), opening.at_once, opening.max_latency_s,
        )  # fmt: skip

    def counted(self, now_s: float) -> tuple[int, float] | None:
        return None if self._watch is None else self._watch.arrived().get(self.name)

    def waiting(self, offset: Offset | None, now_s: float) -> int:
        return max(map(waiting_rows, self._statuses(offset)), default=0)

    def finished(self, offset: Offset | None, once_since_s: float | None = None) -> bool:
        """Whether every stream has ended, or what there was at first is all read."""
        statuses = self._statuses(offset)
        return bool(statuses) and all(
            status["finished"] and status["seq"] == status["reached"] for status in statuses
        )

    def arrivals(self, start: Offset | None, end: Offset) -> list[Arrivals]:
        if start is not None and (start["log"], start["seq"]) == (end["log"], end["seq"]):
            return []
        return [Arrivals(*map(float, part)) for part in end["arrived"]]

    def nothing_there(self) -> str | None:
        """What its system says; streams that are generated or only declared need nothing there."""
        streams = self._streams
        if streams.generators is not None or not streams.discover:
            return None
        with closing(make_backend(streams.kind, streams.backend_options)) as backend:
            try:
                return backend.nothing_there()
            except Unavailable as error:
                return str(error).rstrip(".")
            except Exception:  # noqa: BLE001 - a user's class; its runner will say what and where
                return None

    def sample(self, batches: int, rows: int, span_s: float) -> Streams | None:
        """Generated ones can be generated again; others are read once, and not for exercise."""
        if not self._streams.generators:
            return None
        some = list(self._streams.generators.items())[:SAMPLED_STREAMS]
        each = batches * rows // len(some)
        return replace(
            self._streams,
            generators={name: few(stream, each, span_s) for name, stream in some},
            declared=None,
            discover=True,
            admission=replace(self._streams.admission, max_rows=rows),
        )

    def _statuses(self, offset: Offset | None) -> list[dict[str, Any]]:
        """What the runner that gave an offset says, with the entry up to which it is `reached`.

        Before a first batch with rows nobody knows which log it will be in: what all runners say.
        """
        if self._watch is None:
            return []
        if offset is not None and int(offset["log"]) >= 0:
            status = self._watch.status_at(self.name, int(offset["log"]), int(offset["seq"]))
            return [] if status is None else [status]
        return [{**status, "reached": 0} for status in self._watch.fresh_statuses(self.name)]
