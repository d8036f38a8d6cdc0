"""What is known of the key groups of a running query: who holds them, and what they take.

Works from a plain StreamingQuery: its parts that hold state are read from the plan of a batch that
has ended, and their tasks from the driver's status store.
"""

import threading
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from penstock.model.observation import Floats, GroupTraffic
from penstock.model.plan import QueryPlan
from penstock.spark import handles
from penstock.spark.checkpoint.state_size import state_bytes
from penstock.spark.handles import BatchExecution, Texts
from penstock.spark.handles.state_stores import Stores
from penstock.spark.measure.batch_work import GroupLoad, TaskGroups, WorkReader

NEWEST_WEIGHT = 0.3  # of the newest batch in what a key group usually takes


@dataclass(frozen=True)
class HeldGroups:
    """The key groups of one component, as columns."""

    stores: Stores
    executor: Texts  # where the task of each ran in the newest batch
    run_time_s: Floats  # what it took there
    usual_s: Floats  # a running mean over batches without a move


class KeyGroupReader:
    """Follows the batches of one query; may be called from several threads."""

    def __init__(
        self, session: SparkSession, query: StreamingQuery, plan: QueryPlan | None = None,
        prefix: str = "", grouping: Callable[[int], TaskGroups | None] = lambda _: None,
    ) -> None:  # fmt: skip
        """`prefix` distinguishes the components of several queries; `grouping` as in WorkReader."""
        self._prefix, self._grouping = prefix, grouping
        self._session = session
        self._query = query
        self._work = WorkReader(session, query, plan, grouping)
        self._checkpoint = handles.checkpoint_of(query)
        self._lock = threading.Lock()
        self._begun: BatchExecution | None = None
        self._ended: BatchExecution | None = None
        self._traffic: dict[tuple[str, str], Floats] = {}
        self._remote_bytes = self._remote_wait_s = 0.0  # running means over batches
        self.held: dict[str, HeldGroups] = {}
        self.newest: int | None = None  # the batch they were seen in

    def read(self) -> None:
        """Take in the tasks of batches that ended since the last call; cheap when none did."""
        with self._lock:
            if self.newest is not None and self.newest >= handles.last_batch(self._query):
                return
            if self._follow_plans() and self._ended is not None:
                self._work.look(self._ended.batch_id, self._ended)
            elif self._work.curious:
                return  # jobs that are read before their plan teach nothing of it
            work = self._work.take()
            if work is None:
                return
            self._remote_bytes += NEWEST_WEIGHT * (work.remote_bytes - self._remote_bytes)
            self._remote_wait_s += NEWEST_WEIGHT * (work.remote_wait_s - self._remote_wait_s)
            held = dict(self.held)
            for name, load in work.groups.items():
                named = self._prefix + name
                if not load.executor.any():
                    continue  # tasks worked on several, and on which is not known
                held[named] = _held(self._weighed(name, load), held.get(named))
            self.held, self.newest = held, max(work.batches)

    def _weighed(self, component: str, load: GroupLoad) -> GroupLoad:
        """Of key groups that one task works on, each with a part of its time by what it reads."""
        ended = self._ended
        grouping = None if ended is None else self._grouping(ended.batch_id)
        if ended is None or not grouping:
            return load
        size_bytes = np.ones(len(load.run_time_s))  # where nothing is sent, one is like the other
        for one in self._work.parts(ended):
            if one.feeds == component and one.part.shuffle is not None:
                sizes = handles.shuffle_sizes(self._session, one.part.shuffle, len(size_bytes))
                if sizes is not None:
                    np.add.at(size_bytes, sizes.partition, sizes.size_bytes)
        run_time_s = load.run_time_s.copy()
        for mine in (list(task) for task in grouping):
            share = size_bytes[mine] / size_bytes[mine].sum()
            run_time_s[mine] = share * load.run_time_s[mine].sum()
        return replace(load, run_time_s=run_time_s)

    def traffic(self) -> tuple[GroupTraffic, ...]:
        """Bytes between key groups of consecutive components in a batch, a running mean.

        A batch in which nothing was passed on, as no window closed, would reveal nothing by itself.
        """
        self.read()
        ended = self._ended
        if ended is None:
            return ()
        parts = self._work.parts(ended)
        groups = {one.component: one.part.key_groups for one in parts if one.part.stateful}
        for one in parts:
            shuffle, feeds = one.part.shuffle, one.feeds
            if shuffle is None or not one.part.stateful or feeds not in groups:
                continue
            sizes = handles.shuffle_sizes(self._session, shuffle, groups[feeds])
            if sizes is None:
                continue
            newest = np.zeros((one.part.key_groups, groups[feeds]))
            newest[sizes.map_task, sizes.partition] = sizes.size_bytes
            pair = self._prefix + one.component, self._prefix + feeds
            before = self._traffic.get(pair, newest)
            self._traffic[pair] = (1 - NEWEST_WEIGHT) * before + NEWEST_WEIGHT * newest
        price_s = self._remote_byte_s()
        return tuple(_traffic(*pair, sizes, price_s) for pair, sizes in self._traffic.items())

    def _remote_byte_s(self) -> float:
        """What tasks wait for a byte of another host; NaN while all that is sent stays at home.

        Executors of one host read each other's files, for which Spark counts no remote byte.
        """
        if self._remote_bytes >= 1:
            return self._remote_wait_s / self._remote_bytes
        crosses = any(
            bool((sizes[self._apart(*pair, sizes)] > 0).any())
            for pair, sizes in self._traffic.items()
        )
        return 0.0 if crosses else float("nan")

    def _apart(self, source: str, target: str, sizes: Floats) -> NDArray[np.bool_]:
        """Pairs of key groups on two executors."""
        if source not in self.held or target not in self.held:
            return np.zeros(sizes.shape, dtype=bool)
        return np.not_equal.outer(self.held[source].executor, self.held[target].executor)

    def state_bytes(self, component: str) -> Floats:
        """Bytes that each key group of a component would load elsewhere."""
        stores = self.held[component].stores
        return state_bytes(self._checkpoint, stores.operators, stores.key_groups)

    def _follow_plans(self) -> bool:
        """Keep the newest execution that has ended, as only that may be read; whether it is new."""
        self._begun = self._begun or handles.last_execution(self._query)
        if self._begun is None or handles.last_batch(self._query) < self._begun.batch_id:
            return False
        new = self._ended is None or self._ended.batch_id != self._begun.batch_id
        self._ended, self._begun = self._begun, None
        return new


def _traffic(source: str, target: str, sizes: Floats, price_s: float) -> GroupTraffic:
    sender, receiver = np.nonzero(sizes)
    return GroupTraffic(source, target, sender, receiver, sizes[sender, receiver], price_s)


def _held(load: GroupLoad, before: HeldGroups | None) -> HeldGroups:
    stores = Stores(load.stateful, load.joins, len(load.run_time_s))
    usual_s = load.run_time_s
    if before is not None and len(before.usual_s) == len(usual_s):
        # A batch in which a key group moved is not what it usually takes.
        unmoved = before.executor == load.executor
        mixed = (1 - NEWEST_WEIGHT) * before.usual_s + NEWEST_WEIGHT * usual_s
        usual_s = np.where(unmoved, mixed, before.usual_s)
    return HeldGroups(stores, load.executor, load.run_time_s, usual_s)
