"""How fast rows come to sources that count them, at any moment or once a batch.

Counts over a period of the loop would jump with the number of batches that began in it, so a
rate is taken between two counts, over the time between them. The first count gives no rate: what
waited by then may have come at any time, and a forecast would follow it for long.
"""

import math
from collections.abc import Mapping

from penstock.spark.sources.running.source import RunningSource


class SourceRates:
    """Follows the counts of all sources of a run."""

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
