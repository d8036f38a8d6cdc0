"""What a run knows of one of its sources, whatever kind it is."""

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from penstock.model.arrivals import Arrivals
from penstock.model.topology import Source
from penstock.spark.routes.by_value import at_source
from penstock.spark.routes.frames import route_options
from penstock.spark.sources.batch_choice import OPTION as FORMS
from penstock.spark.sources.control import Controls
from penstock.spark.sources.offsets import Offset


@dataclass(frozen=True)
class Opening:
    """How a source is read: where its orders come from, and what its rows have to carry."""

    controls: Controls | None = None
    at_once: bool = False  # what is there at first is all that is read
    max_latency_s: float | None = None  # of the topology
    forms: tuple[str, ...] = ()  # other forms of operators: a column says which are in use

    def options(self, source: str) -> dict[str, str]:
        """Options of the reader of a source of ours."""
        found = {} if self.controls is None else self.controls.options(source)
        return found | ({FORMS: ",".join(self.forms)} if self.forms else {})


class RunningSource(ABC):
    """One source of a running topology. What a kind does not know, it says as written here."""

    orders: frozenset[str] = frozenset()  # the fields of Control that it obeys
    counts_arrivals = False  # knows how many rows came; so it has a rate and a backlog
    arrivals_expire = False  # when rows arrived is known only until their batch is committed
    ends_at_once = False  # read at once, it has an end
    comes_evenly = False  # the times between its rows do not vary; of others nothing is known

    def __init__(self, source: Source) -> None:
        self.name = source.name
        self._source = source

    @property
    def identity(self) -> str:
        """What must stay as it is for a checkpoint to be read on."""
        return "a function"

    @property
    def learns_capacity(self) -> bool:
        """Whether it wants to know how many rows a second a task of its own serves."""
        return False

    @property
    def rows_in_all(self) -> int | None:
        """Rows it will ever have; None where it does not end or nobody knows."""
        return None

    @abstractmethod
    def open(self, session: SparkSession, opening: Opening) -> DataFrame:
        """Its streaming frame; nothing is read yet."""

    def held(self) -> AbstractContextManager[None]:
        """For the time of a run; Unavailable where another run may not read the same and does."""
        return nullcontext()

    def counted(self, now_s: float) -> tuple[int, float] | None:
        """Rows that arrived, and when they were counted; None where nobody counts, or not yet."""
        return None

    def rows_at(self, offset: Offset) -> int:
        """Rows before an offset."""
        return 0

    def waiting(self, offset: Offset | None, now_s: float) -> int:
        """Rows that arrived and are behind an offset; None: before the first batch."""
        return 0

    def finished(self, offset: Offset | None, once_since_s: float | None = None) -> bool:
        """Whether it has ended and is read to its end.

        With `once_since_s`, it was opened to be read at once, at that time.
        """
        return False

    def arrivals(self, start: Offset | None, end: Offset) -> list[Arrivals]:
        """When the rows between two offsets arrived; nothing where that is not known."""
        return []

    def nothing_there(self) -> str | None:
        """Why there is nothing to read yet; None where there is something, or nobody knows."""
        return None

    def sample(self, batches: int, rows: int, span_s: float) -> Any:
        """A reader of a few rows like its own, which uses nothing up; None: there is none."""
        return None

    def _routed(self, session: SparkSession, format_: str, options: dict[str, str]) -> DataFrame:
        """The frame of a reader of ours, with its rows where its route sends them."""
        route = self._source.route
        if route is not None:
            options = options | route_options(session, self.name, route)
        frame = session.readStream.format(format_).options(**options).load()
        return at_source(frame, self.name, route)


class SourceRates:
    """How fast rows come to the sources of a run that count them, at any moment or once a batch.

    Counts over a period of the loop would jump with the number of batches that began in it, so a
    rate is taken between two counts, over the time between them. The first count gives no rate:
    what waited by then may have come at any time, and a forecast would follow it for long.
    """

    def __init__(self, sources: Mapping[str, RunningSource]) -> None:
        self._sources = sources
        self._counted: dict[str, tuple[int, float]] = {}
        self._rate_per_s: dict[str, float] = {}

    def take(self, now_s: float) -> tuple[float, float]:
        """Rows a second over all sources, and rows that came since they counted, at that rate.

        NaN and 0 while a source has not counted twice.
        """
        asked = {name: source.counted(now_s) for name, source in self._sources.items()}
        counts = {name: count for name, count in asked.items() if count is not None}
        for source, (rows, at_s) in counts.items():
            before, since_s = self._counted.setdefault(source, (rows, at_s))
            if at_s > since_s:
                self._rate_per_s[source] = max(0, rows - before) / (at_s - since_s)
            if at_s != since_s:  # also when the machine's clock was set back between two counts
                self._counted[source] = (rows, at_s)
        unseen = sum(
            self._rate_per_s.get(source, 0.0) * max(0.0, now_s - at_s)
            for source, (_, at_s) in counts.items()
        )
        known = counts.keys() <= self._rate_per_s.keys()
        return sum(self._rate_per_s.values()) if known else math.nan, unseen
