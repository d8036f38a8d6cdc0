"""The interval of batches over the periods of a run."""

import math

from penstock.model.decision import RoomDecision
from penstock.model.observation import Observation
from penstock.scaling.batch_interval import decide_interval

ROOM = "interval"


class BatchInterval:
    """The interval that is in use, and what is to become of it."""

    def __init__(self, max_latency_s: float) -> None:
        self._max_latency_s = max_latency_s
        self.interval_s = 0.0

    def look(self, seen: Observation) -> RoomDecision | None:
        """Another interval with its numbers and reasons; None: as it is."""
        decision = decide_interval(self.interval_s, seen, self._max_latency_s)
        if decision.plan == self.interval_s:
            return None
        numbers = {
            "interval_s": decision.plan,
            "before_s": self.interval_s,
            "overhead_s": seen.batches.mean_overhead_s if seen.batches else math.nan,
            "load": seen.offered_load,
            "processors": float(seen.processors),
        }
        known = {name: value for name, value in numbers.items() if math.isfinite(value)}
        what = f"batch interval {self.interval_s:.2g} s -> {decision.plan:.2g} s"
        return RoomDecision(seen.at_s, ROOM, "microbatch", what, known, decision.reasons)
