"""What waits in each lane, sampled before a batch takes its rows."""

from collections import deque

import numpy as np

from penstock.model.observation import Floats, Ints
from penstock.spark.sources.streams import NO_LANE

SAMPLES_KEPT = 8  # of each lane


class LaneQueues:
    """Samples of queues by lane, and when the last batch was formed."""

    def __init__(self, steady_s: float) -> None:
        self._samples: dict[int, deque[float]] = {}
        self._batch_s = steady_s
        self.in_flight: dict[int, int] = {}  # rows of the newest batch, by lane

    def sample(self, lane: Ints, waiting: Ints) -> None:
        """So many rows wait at streams of these lanes."""
        placed = lane != NO_LANE
        if not placed.any():
            return
        numbers, of = np.unique(lane[placed], return_inverse=True)
        for number, rows in zip(
            numbers.tolist(), np.bincount(of, waiting[placed]).tolist(), strict=True
        ):
            self._samples.setdefault(number, deque(maxlen=SAMPLES_KEPT)).append(rows)

    def took_batch(self, lane: Ints, rows: Ints, steady_s: float) -> None:
        """A batch was formed of so many rows of streams of these lanes."""
        self._batch_s = steady_s
        taken = np.bincount(lane, rows).astype(np.int64)
        self.in_flight = {int(number): int(taken[number]) for number in np.flatnonzero(taken)}

    def since_batch_s(self, steady_s: float) -> float:
        """Time in which rows have come that no batch took."""
        return max(steady_s - self._batch_s, 0.0)

    def keep(self, lanes: Ints) -> None:
        """Forget other lanes."""
        for gone in set(self._samples) - set(lanes.tolist()):
            del self._samples[gone]

    def samples(self, lanes: Ints) -> Floats:
        """Queues of lanes, oldest first, NaN where there are fewer samples."""
        found = np.full((len(lanes), SAMPLES_KEPT), np.nan)
        for row, lane in enumerate(lanes.tolist()):
            queue = self._samples.get(lane, ())
            if queue:
                found[row, SAMPLES_KEPT - len(queue) :] = queue
        return found
