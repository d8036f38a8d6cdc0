"""Nodes of a simulated cluster: asked for, started after a delay, drained when given up."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

from penstock.sim.scenario import ClusterSpec


@dataclass(frozen=True)
class Node:
    """One executor; it works from `live_at_s` until it drains, and is there until `gone_at_s`."""

    name: str
    slots: int
    live_at_s: float
    asked_at_s: float = 0.0
    given_up_at_s: float = math.inf
    gone_at_s: float = math.inf

    @property
    def draining(self) -> bool:
        """Whether it takes no new work, as it was given up."""
        return self.given_up_at_s < math.inf

    @property
    def paid_until_s(self) -> float:
        """When it is paid for no more: as it goes, or as it is given up before it became live."""
        return self.gone_at_s if self.given_up_at_s >= self.live_at_s else self.given_up_at_s


class Cluster:
    """The nodes there are, and how long those that left were there."""

    def __init__(self, spec: ClusterSpec) -> None:
        self._spec = spec
        self._nodes = [Node(f"node-{n}", spec.slots, 0.0) for n in range(spec.executors)]
        self._named, self._left_node_seconds, self._left_paid_seconds = spec.executors, 0.0, 0.0

    @property
    def executors(self) -> int:
        """Nodes asked for, started or not, without those being drained."""
        return sum(not node.draining for node in self._nodes)

    def present(self, now_s: float) -> tuple[Node, ...]:
        """Nodes that run, drained ones included."""
        return tuple(node for node in self._nodes if node.live_at_s <= now_s < node.gone_at_s)

    def processors(self, now_s: float) -> int:
        """Slots that take new work."""
        return sum(node.slots for node in self.present(now_s) if not node.draining)

    def slowed_s(self, now_s: float) -> float:
        """By how much a batch takes longer that begins now, as executors start or just did."""
        for node in self._nodes:
            started = node.asked_at_s < node.live_at_s <= node.given_up_at_s
            if started and node.asked_at_s <= now_s < node.live_at_s + self._spec.startup_s:
                return self._spec.pause_s
        return 0.0

    def next_start_s(self, after_s: float) -> float:
        """When the next node becomes live; inf if none is starting."""
        starts = (n.live_at_s for n in self._nodes if n.live_at_s > after_s and not n.draining)
        return min(starts, default=math.inf)

    def scale(self, total: int, now_s: float, leaving: tuple[str, ...] = ()) -> int:
        """Ask for a number of nodes; returns how many are new, negative for those given up.

        Those named are given up first, then nodes that still start, then the youngest.
        """
        self._forget(now_s)
        change = total - self.executors
        for _ in range(change):
            name = f"node-{self._named}"
            self._named += 1
            live_at_s = now_s + self._spec.startup_s
            self._nodes.append(Node(name, self._spec.slots, live_at_s, asked_at_s=now_s))
        kept = [index for index, node in enumerate(self._nodes) if not node.draining]

        def order(i: int) -> tuple[bool, float, int]:
            return self._nodes[i].name not in leaving, -self._nodes[i].live_at_s, -i

        for index in sorted(kept, key=order)[: max(0, -change)]:
            self._nodes[index] = replace(self._nodes[index], given_up_at_s=now_s)
        return change

    def release(self, at_s: float) -> None:
        """Let the nodes that drain go at a moment, when what they worked on is done.

        One given up while it started is gone as it would have become live: it never was there.
        """
        for index, node in enumerate(self._nodes):
            if node.draining and math.isinf(node.gone_at_s):
                self._nodes[index] = replace(node, gone_at_s=max(at_s, node.live_at_s))

    def _forget(self, now_s: float) -> None:
        """Keep no more than the time of nodes that are gone: over weeks there are very many."""
        gone = [node for node in self._nodes if node.gone_at_s <= now_s]
        self._left_node_seconds += sum(node.gone_at_s - node.live_at_s for node in gone)
        self._left_paid_seconds += sum(node.paid_until_s - node.asked_at_s for node in gone)
        self._nodes = [node for node in self._nodes if node.gone_at_s > now_s]

    def node_seconds(self, until_s: float) -> float:
        """Time for which nodes were there, added over all of them, until the present or later."""
        return self._left_node_seconds + sum(
            max(0.0, min(node.gone_at_s, until_s) - node.live_at_s)
            for node in self._nodes
            if node.live_at_s < until_s
        )

    def paid_seconds(self, until_s: float) -> float:
        """Time from asking for nodes until they were gone, until the present or later."""
        return self._left_paid_seconds + sum(
            min(node.paid_until_s, until_s) - node.asked_at_s for node in self._nodes
        )


def divided(slots: int, weights: Mapping[str, float]) -> dict[str, int]:
    """Slots for each name in proportion to its weight, one at least, all of them used.

    Each further slot goes to the name with the most weight for each slot it has (the first of
    equals), which is what keeps the busiest least busy.
    """
    given = dict.fromkeys(weights, 1)
    for _ in range(slots - len(given)):
        neediest = max(given, key=lambda name: weights[name] / given[name])
        given[neediest] += 1
    return given
