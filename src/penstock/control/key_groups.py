"""The key groups of all components as one table, in the form that an allocation is decided on."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from penstock.allocation.problem import NOWHERE, Floats, Ints
from penstock.allocation.traffic import Traffic
from penstock.model.observation import NodeObservation, Observation


@dataclass(frozen=True)
class KeyGroupTable:
    """Columns over the key groups of all components, and the nodes they may live on."""

    nodes: tuple[NodeObservation, ...]
    component: tuple[str, ...]
    key_group: Ints
    load: Floats  # points of one processor: 100 keeps it busy all the time
    state_bytes: Floats  # 0 where unknown
    home: Ints  # position in `nodes`; NOWHERE when its node is gone or not known
    traffic: Traffic

    def __len__(self) -> int:
        return len(self.component)

    @cached_property
    def names(self) -> list[str]:
        """A name for each key group, for reasons."""
        pairs = zip(self.component, self.key_group.tolist(), strict=True)
        return [f"{component}-{group}" for component, group in pairs]

    @property
    def collocation(self) -> float:
        """The measured share of bytes between key groups that stayed on their node."""
        return self.traffic.collocation(self.home)


def key_group_table(observation: Observation) -> KeyGroupTable:
    """The table of an observation; empty when no component has key groups."""
    nodes = observation.nodes
    position = {node.name: index for index, node in enumerate(nodes)}
    component: list[str] = []
    first: dict[str, int] = {}
    group: list[Ints] = []
    load: list[Floats] = []
    size: list[Floats] = []
    home: list[int] = []
    for name, held in observation.key_groups.items():
        count = len(held.load_s)
        first[name] = len(component)
        component += [name] * count
        group.append(np.arange(count, dtype=np.int64))
        load.append(np.nan_to_num(held.load_s) / observation.period_s * 100.0)
        size.append(np.nan_to_num(held.state_bytes))
        home += [position.get(str(node), NOWHERE) for node in held.node]
    return KeyGroupTable(
        nodes,
        tuple(component),
        np.concatenate(group) if group else np.empty(0, np.int64),
        np.concatenate(load) if load else np.empty(0),
        np.concatenate(size) if size else np.empty(0),
        np.array(home, dtype=np.int64),
        _traffic(observation, first, component),
    )


def _traffic(observation: Observation, first: dict[str, int], component: list[str]) -> Traffic:
    known = [one for one in observation.traffic if one.source in first and one.target in first]
    number = {name: index for index, name in enumerate(first)}
    nothing = np.empty(0, dtype=np.int64)
    return Traffic(
        np.concatenate([first[one.source] + one.from_group for one in known] or [nothing]),
        np.concatenate([first[one.target] + one.to_group for one in known] or [nothing]),
        np.concatenate([one.size_bytes for one in known] or [np.empty(0)]),
        np.array([number[name] for name in component], dtype=np.int64),
    )
