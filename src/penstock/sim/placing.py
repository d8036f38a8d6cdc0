"""Key groups of simulated components: where they live, and what an uneven placement costs.

Work that arrives for a component divides among its key groups by fixed weights (1 / rank ** skew).
A batch ends when the node with the most work for each of its slots has done its part, so work over
all processors is stretched by how far that node is above the mean.
"""

from collections.abc import Collection, Sequence

import numpy as np
from numpy.typing import NDArray

from penstock.control.actions import Move
from penstock.model.observation import Floats, KeyGroups
from penstock.sim.cluster import Node

STATE_BYTES = 1e6  # of each key group; what a move costs is the scenario's


class SimulatedPlacement:
    """Where the key groups of all components are; at first dealt out in turn."""

    def __init__(
        self, components: Sequence[str], groups: int, skew: float, nodes: Sequence[Node]
    ) -> None:
        self.groups = groups
        weight = np.arange(1, groups + 1, dtype=np.float64) ** -skew
        self._weight: Floats = weight / weight.sum()
        self._node: dict[str, NDArray[np.str_]] = {
            component: np.array([nodes[g % len(nodes)].name for g in range(groups)], dtype="<U64")
            for component in components
        }

    def refusal(self, move: Move, nodes: Collection[str]) -> str | None:
        """Why a move is not possible, or None."""
        if move.component not in self._node:
            return f"component is {move.component!r}; known: {', '.join(self._node)}."
        if not 0 <= move.key_group < self.groups:
            return f"key group {move.key_group} is not from 0 to {self.groups - 1}."
        if move.node not in nodes:
            return f"node {move.node!r} takes no work; nodes that do: {', '.join(sorted(nodes))}."
        return None

    def move(self, moves: Sequence[Move]) -> int:
        """Move key groups; how many were elsewhere before."""
        changed = 0
        for move in moves:
            changed += self._node[move.component][move.key_group] != move.node
            self._node[move.component][move.key_group] = move.node
        return changed

    def rehome(self, nodes: Sequence[Node]) -> int:
        """Give key groups of nodes that are gone or drain another home, the lightest first."""
        names = [node.name for node in nodes]
        load = dict.fromkeys(names, 0.0)
        for homes in self._node.values():
            for group, home in enumerate(homes.tolist()):
                if home in load:
                    load[home] += float(self._weight[group])
        lost = [
            (component, group)
            for component, homes in self._node.items()
            for group, home in enumerate(homes.tolist())
            if home not in load
        ]
        for component, group in lost if names else ():
            lightest = min(names, key=lambda name: load[name])
            self._node[component][group] = lightest
            load[lightest] += float(self._weight[group])
        return len(lost)

    def stretch(self, work_s: dict[str, float], nodes: Sequence[Node]) -> float:
        """How much longer the slowest node takes than an even one; 1 without work."""
        total = sum(work_s.get(component, 0.0) for component in self._node)
        slots = {node.name: node.slots for node in nodes}
        if total <= 0 or not slots:
            return 1.0
        spent = dict.fromkeys(slots, 0.0)
        for component, homes in self._node.items():
            for group, home in enumerate(homes.tolist()):
                if home in spent:
                    spent[home] += work_s.get(component, 0.0) * float(self._weight[group])
        slowest = max(spent[name] / slots[name] for name in slots)
        return max(1.0, slowest * sum(slots.values()) / total)

    def observed(self, component: str, work_s: float) -> KeyGroups | None:
        """The key groups of a component after a period in which it did so much work."""
        if component not in self._node:
            return None
        sizes = np.full(self.groups, STATE_BYTES)
        return KeyGroups(self._weight * work_s, sizes, self._node[component].copy())
