"""The key groups of all components as one table, in the form that an allocation is decided on."""

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from penstock.allocation.problem import NOWHERE, Floats, Ints
from penstock.allocation.traffic import Traffic
from penstock.control.actions import MigrationCost
from penstock.model.observation import NodeObservation, Observation

FIRST_GUESS_S = 0.1  # for opening a store elsewhere; measured on one machine, corrected by moves
FIRST_GUESS_BYTES_PER_S = 100e6
NEWEST_WEIGHT = 0.5
LEAST_FACTOR, MOST_FACTOR = 0.05, 20.0  # one odd measurement must not make moves free or forbidden


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
    other_load: Floats  # of each node, in the same points: work that is no key group's
    remote_price: Floats  # seconds a second that each pair of the traffic costs if it is apart
    reserved_cpu: Floats  # share of a CPU declared for each; NaN where none is
    reserved_memory_bytes: Floats  # declared for the state of each; NaN where none is

    def __len__(self) -> int:
        return len(self.component)

    @cached_property
    def names(self) -> list[str]:
        """A name for each key group, for reasons."""
        pairs = zip(self.component, self.key_group.tolist(), strict=True)
        return [f"{component}-{group}" for component, group in pairs]

    def worth_joining(self, move_s: Floats, within_s: float) -> "KeyGroupTable":
        """The table without traffic that would not repay, in some time, the cheaper end's move.

        What is not known to cost anything or nothing counts.
        """
        traffic = self.traffic
        cheaper_s = np.minimum(move_s[traffic.source], move_s[traffic.target])
        kept = ~(self.remote_price * within_s < cheaper_s)
        fewer = Traffic(
            traffic.source[kept], traffic.target[kept], traffic.rate[kept], traffic.operator
        )
        return replace(self, traffic=fewer, remote_price=self.remote_price[kept])

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
        home += [position.get(node, NOWHERE) for node in held.node.tolist()]
    loads = np.concatenate(load) if load else np.empty(0)
    homes = np.array(home, dtype=np.int64)
    return KeyGroupTable(
        nodes,
        tuple(component),
        np.concatenate(group) if group else np.empty(0, np.int64),
        loads,
        np.concatenate(size) if size else np.empty(0),
        homes,
        _traffic(observation, first, component),
        _other_load(observation, loads, homes),
        _remote_price(observation, first),
        *_reserved(observation, component),
    )


def _other_load(observation: Observation, load: Floats, home: Ints) -> Floats:
    """What nodes were busy with besides key groups.

    The work of key groups is taken from the newest batch, so a node may seem to do less than they
    do; what all nodes did together beyond their key groups is divided over those with more.
    """
    busy_s = np.array([node.busy_s for node in observation.nodes], dtype=np.float64)
    busy = np.nan_to_num(busy_s) / observation.period_s * 100.0
    placed = home != NOWHERE
    beyond = busy - np.bincount(home[placed], load[placed], len(busy))
    left = np.maximum(beyond, 0.0)
    total = float(left.sum())
    return left * (max(0.0, float(beyond.sum())) / total) if total > 0 else left


def _reserved(observation: Observation, component: list[str]) -> tuple[Floats, Floats]:
    known = {one.name: one for one in observation.components}
    cpu = [known[name].reserved_cpu if name in known else math.nan for name in component]
    memory = [
        known[name].reserved_memory_bytes if name in known else math.nan for name in component
    ]
    return np.array(cpu, dtype=np.float64), np.array(memory, dtype=np.float64)


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


def _remote_price(observation: Observation, first: dict[str, int]) -> Floats:
    """What is sent is that of a batch, so it comes as often as batches do."""
    batches = observation.batches.count if observation.batches is not None else 1
    known = [one for one in observation.traffic if one.source in first and one.target in first]
    paid = [one.size_bytes * one.remote_byte_s for one in known]
    return np.concatenate([*paid, np.empty(0)]) * batches / observation.period_s


@dataclass(frozen=True)
class LearntCost:
    """Seconds of loading for each key group: a guess from its size, times what was measured."""

    factor: float = 1.0

    def seconds(self, state_bytes: Floats) -> Floats:
        """What each move is expected to cost."""
        return self.factor * (FIRST_GUESS_S + state_bytes / FIRST_GUESS_BYTES_PER_S)

    def corrected(self, measured: MigrationCost) -> "LearntCost":
        """With one more measurement.

        >>> LearntCost().corrected(MigrationCost(1, 0.0, load_s=0.3, delay_s=0.0)).factor
        2.0
        """
        if measured.key_groups == 0 or not measured.load_s >= 0:
            return self
        guess_s = measured.key_groups * FIRST_GUESS_S
        guess_s += np.nan_to_num(measured.state_bytes) / FIRST_GUESS_BYTES_PER_S
        mixed = (1 - NEWEST_WEIGHT) * self.factor + NEWEST_WEIGHT * measured.load_s / guess_s
        return LearntCost(float(np.clip(mixed, LEAST_FACTOR, MOST_FACTOR)))
