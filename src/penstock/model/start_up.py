"""From when a run counts: its start-up is told beside the share of results in time, not in it.

The first batch compiles code and starts processes, so rows that came before its end waited for that
and not for their turn. Start-up ends with the first period of whose results 95% are of rows that
arrived after the period of the first results (one stream that waits must not prolong it); what
attaches to a query counts from its own first results. Whatever sums up a run takes its rule from
here.
"""

import math
from collections.abc import Iterable

from penstock.model.observation import Observation


class StartUp:
    """Takes the periods of a run in their order and says of each whether it counts."""

    def __init__(self) -> None:
        self._first_results_s: float | None = None
        self._over = False

    def counts(self, seen: Observation) -> bool:
        """Whether start-up is over for the results of this period."""
        latency = seen.latency
        if self._over or latency is None or latency.count == 0:
            return self._over
        if self._first_results_s is None:
            self._first_results_s = seen.at_s
            return False
        waited_s = latency.p95_s if math.isfinite(latency.p95_s) else latency.max_s
        self._over = seen.at_s - seen.period_s - waited_s >= self._first_results_s
        return self._over


def after_start_up(observations: Iterable[Observation]) -> list[Observation]:
    """The periods of a run that count."""
    start_up = StartUp()
    return [seen for seen in observations if start_up.counts(seen)]
