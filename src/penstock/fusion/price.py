"""What a batch shuffles and takes, as measured, and as foretold for another plan.

The cost model of Guo and Zhou 2017 counts rows between operators. On Spark some of these are merged
before they are sent, rows are of unlike sizes, and each shuffle is a stage with a task for each key
group, which costs time whatever its rows. What was measured of the present plan says how much rows
shrink, how well they are compressed, and what a task takes to be launched and to read and write its
shuffles. Only that is saved with it: its state is opened, changed and committed in the component.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median, mode

import numpy as np

from penstock.fusion.shuffles import Key
from penstock.model.observation import Observation

Edge = tuple[str, str]  # from a source where the first is no operator


@dataclass(frozen=True)
class Price:
    """Of one batch."""

    rows: float
    size_bytes: float
    batch_s: float

    def numbers(self, when: str) -> dict[str, float]:
        """For a history.

        >>> Price(10.0, 400.0, 0.5).numbers("foretold")
        {'foretold_rows': 10.0, 'foretold_bytes': 400.0, 'foretold_batch_s': 0.5}
        """
        return {
            f"{when}_rows": self.rows,
            f"{when}_bytes": self.size_bytes,
            f"{when}_batch_s": self.batch_s,
        }


@dataclass(frozen=True)
class Sent:
    """Rows of one shuffle in a batch; `merged` ones are aggregated before they are sent."""

    rows: float
    row_bytes: float
    merged: bool


@dataclass(frozen=True)
class StageCosts:
    """What a task takes besides its state, and what a row takes that is sent."""

    task_s: float
    row_s: float = 0.0


@dataclass(frozen=True)
class ShufflePlan:
    """The shuffles of a plan, and its stages that have a task for each key group."""

    sent: tuple[Sent, ...]
    stages: int

    def rows(self, merged_share: float) -> float:
        """Rows sent, where so many of those that are merged are left."""
        return sum(one.rows * (merged_share if one.merged else 1.0) for one in self.sent)

    def plain_bytes(self, merged_share: float) -> float:
        """Their size before it is compressed."""
        return sum(
            one.rows * one.row_bytes * (merged_share if one.merged else 1.0) for one in self.sent
        )


@dataclass(frozen=True)
class Workflow:
    """What of a topology decides on its shuffles."""

    keys: Mapping[str, Key]
    edges: Sequence[Edge]
    rows: Mapping[Edge, float]  # of a batch
    row_bytes: Mapping[str, float]  # of what each node emits
    shared: Collection[str]  # nodes behind an exchange that all their consumers read
    once: Collection[str]  # nodes whose rows one shuffle can bring to a whole component
    exact: Collection[
        str
    ] = ()  # operators that are divided by all of their key: they merge nothing


def shuffle_plan(flow: Workflow, groups: Iterable[Collection[str]]) -> ShufflePlan:
    """What is shuffled when these operators are fused and the others are not."""
    fused = [frozenset(o for o in group if flow.keys.get(o)) for group in groups]
    inside = {name for group in fused for name in group}
    within = [frozenset(group) for group in groups]
    sent: list[Sent] = []
    stages, lifted = 0, set[str]()
    for members, whole in zip(fused, within, strict=True):
        entering = [e for e in flow.edges if e[1] in members and e[0] not in whole]
        taken: set[str] = set()
        for edge in entering:
            upstream = edge[0]
            if upstream in flow.once and upstream in taken:
                continue
            taken.add(upstream)
            if upstream in flow.once and upstream in flow.shared:
                lifted.add(upstream)
            sent.append(Sent(flow.rows[edge], flow.row_bytes[upstream], merged=False))
        stages += 1
    for edge in flow.edges:
        upstream, name = edge
        if not flow.keys.get(name) or name in inside:
            continue
        merges = name not in flow.exact
        size = flow.row_bytes[name if merges else upstream]
        sent.append(Sent(flow.rows[edge], size, merges))
        stages += 1 + (upstream in flow.shared)
    for node in flow.shared:
        if node not in lifted:
            rows = max((flow.rows[e] for e in flow.edges if e[0] == node), default=0.0)
            sent.append(Sent(rows, flow.row_bytes[node], merged=False))
    return ShufflePlan(tuple(sent), stages)


def foretell(
    now: Price, present: ShufflePlan, wanted: ShufflePlan, key_groups: int, costs: StageCosts,
    slots: int,
) -> Price:  # fmt: skip
    """The price of another plan, from that of the present one and what its stages cost.

    Rows fewer than now are saved with the tasks that read and wrote them; more come on top.
    """
    raw = present.rows(0.0)
    merged = present.rows(1.0) - raw
    share = float(np.clip((now.rows - raw) / merged, 0.0, 1.0)) if merged > 0 else 1.0
    plain = present.plain_bytes(share)
    packed = now.size_bytes / plain if plain > 0 else 1.0
    saved_tasks = (present.stages - wanted.stages) * key_groups
    rows = wanted.rows(share)
    more_rows = max(rows - now.rows, 0.0)
    saved_s = (saved_tasks * costs.task_s - more_rows * costs.row_s) / max(slots, 1)
    return Price(
        rows,
        wanted.plain_bytes(share) * packed,
        max(now.batch_s - saved_s, 0.1 * now.batch_s),
    )


def measured_price(window: Sequence[Observation]) -> Price | None:
    """The median batch of a window; None where shuffles were not measured."""
    seen = [
        (one.shuffles.rows, one.shuffles.size_bytes, one.batches.mean_duration_s)
        for one in window
        if one.shuffles is not None and one.batches is not None and one.batches.count
    ]
    if not seen:
        return None
    rows, size, batch_s = (median(column) for column in zip(*seen, strict=True))
    return Price(rows, size, batch_s)


def stage_costs(window: Sequence[Observation]) -> StageCosts | None:
    """Launching as it is on average, shuffling as in the stage where it takes least.

    What other stages take beyond that and beyond Spark's times of their state is work of their
    operators, and state again: it is opened and committed outside of these times. Each stage counts
    as in the median of the batches that had as many as most; None where none was measured.
    """
    batches = [[stage for stage in one.stages if stage.rows] for one in window]
    usual = mode(len(stages) for stages in batches if stages) if any(batches) else 0
    same = list(zip(*(stages for stages in batches if len(stages) == usual), strict=True))
    if not same:
        return None
    launch_s = [median(one.task_s - one.run_s for one in stage) for stage in same]
    shuffling_s = [
        max(median((one.run_s - one.state_s) / one.tasks for one in stage), 0.0) for stage in same
    ]
    row_s = [max(median((one.run_s - one.state_s) / one.rows for one in s), 0.0) for s in same]
    tasks = sum(median(one.tasks for one in stage) for stage in same)
    return StageCosts(sum(launch_s) / tasks + min(shuffling_s), min(row_s))
