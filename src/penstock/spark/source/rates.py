"""How fast rows come to sources that count them once a batch.

Counts over a period of the loop would jump with the number of batches that began in it, so a
rate is taken between two counts, over the time between them.
"""

from penstock.spark.source.watch import SourceWatch


class SourceRates:
    """Follows the counts of all sources of a run."""

    def __init__(self, watch: SourceWatch, now_s: float) -> None:
        self._watch = watch
        self._began_s = now_s
        self._counted: dict[str, tuple[int, float]] = {}
        self._rate_per_s: dict[str, float] = {}

    def take(self, now_s: float) -> tuple[float, float]:
        """Rows a second over all sources, and rows that came since they counted, at that rate."""
        unseen = 0.0
        for source, (rows, at_s) in self._watch.arrived().items():
            before, since_s = self._counted.get(source, (0, self._began_s))
            if at_s > since_s:
                self._rate_per_s[source] = max(0, rows - before) / (at_s - since_s)
                self._counted[source] = (rows, at_s)
            unseen += self._rate_per_s.get(source, 0.0) * max(0.0, now_s - at_s)
        return sum(self._rate_per_s.values()), unseen
