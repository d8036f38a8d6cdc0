"""Instances of components that share nodes, and what a row waits there."""

import numpy as np

from penstock.model.observation import Floats, Ints

WORK_S = 60e-6  # to process a row in an operator
STATE_ROWS = 10_000.0  # of an operator
MOVE_S = 20e-6  # for each row of state that moves
FULLEST = 0.98  # a queue beyond it is counted as backlog


class Nodes:
    """Nodes of some processors each; instances go where the least work is."""

    def __init__(self, count: int, processors: float) -> None:
        self._processors = processors
        self._planned = np.zeros(count)
        self._work = np.zeros(count)
        self.busy = np.zeros(count)
        self.backlog_s = np.zeros(count)

    def place(self, work: float) -> int:
        """The node of one more instance."""
        node = int(self._planned.argmin())
        self._planned[node] += work
        return node

    def add(self, nodes: Ints, work: Floats) -> None:
        """Work of instances in the present minute."""
        self._work += np.bincount(nodes, work, len(self._work))

    def pass_minute(self) -> None:
        """Take what was added as the load of this minute."""
        self.busy = self._work / self._processors
        self.backlog_s = np.maximum(0.0, self.backlog_s + 60 * (self.busy - 1.0))
        self._work = np.zeros_like(self._work)


class Instances:
    """The instances of one component with key groups on them."""

    def __init__(
        self, work: float, nodes: Nodes, utilisation: float, shares: Floats, operators: int,
        interval: int,
    ) -> None:  # fmt: skip
        self._work, self._nodes, self._shares = work, nodes, shares
        self._operators, self._interval = operators, interval
        self._count = max(1, int(np.ceil(work / utilisation)))
        each = work / self._count
        self._node: Ints = np.array([nodes.place(each) for _ in range(self._count)])
        self._place: Ints = np.arange(shares.shape[1]) % self._count
        self._backlog_s = np.zeros(self._count)
        self._pause_s = np.zeros(shares.shape[1])
        self.heaviest = 0.0  # processors that one key group needed so far

    def pass_minute(self, minute: int, swing: float) -> None:
        """Balance if it is time to, and load the nodes."""
        load = self._work * swing * self._shares[minute]
        self.heaviest = max(self.heaviest, float(load.max()))
        self._pause_s[:] = 0.0
        if minute and minute % self._interval == 0:
            self._rebalance(self._shares[minute - self._interval : minute].sum(axis=0))
        busy = np.bincount(self._place, load, self._count)
        # An instance is one thread: more than a processor it cannot use, whatever its node has.
        self._backlog_s = np.maximum(0.0, self._backlog_s + 60 * (busy - 1.0))
        self._nodes.add(self._node, np.minimum(busy, 1.0))

    def _rebalance(self, seen: Floats) -> None:
        """Move key groups from the fullest to the emptiest while that narrows the difference."""
        held = np.bincount(self._place, seen, self._count)
        for _ in range(len(seen)):
            high, low = int(held.argmax()), int(held.argmin())
            mine = np.flatnonzero(self._place == high)
            gap = held[high] - held[low]
            fits = mine[(seen[mine] < gap) & (seen[mine] > 0)]
            if high == low or fits.size == 0 or held[high] <= 1.2 * held.mean():
                break
            group = int(fits[np.abs(seen[fits] - gap / 2).argmin()])
            held[high] -= seen[group]
            held[low] += seen[group]
            self._place[group] = low
            share = float(seen[group] / seen.sum())
            self._pause_s[group] = STATE_ROWS * self._operators * share * MOVE_S

    def delays(self, groups: Ints, operators: int, rng: np.random.Generator) -> Floats:
        """What rows of these key groups take: served by some operators, held up by moves."""
        instance = self._place[groups]
        node = self._node[instance]
        served_s = WORK_S * operators / (1.0 - np.minimum(self._nodes.busy[node], FULLEST))
        mean_s = served_s + self._backlog_s[instance] + self._nodes.backlog_s[node]
        waits = rng.exponential(1.0, len(groups)) * mean_s
        pause = self._pause_s[groups]
        caught = rng.random(len(groups)) < pause / 60
        return np.asarray(waits + np.where(caught, rng.random(len(groups)) * pause, 0.0))
