"""Where the key groups of one query live, and how they come to live elsewhere while it runs.

Works from a plain StreamingQuery, ours or one that a user attaches. A wish is reported to the
driver between two batches (`boundary`), looked for in the tasks of the following batches, and
reported again until the tasks really ran where they should. Key groups of an executor
that is gone, or about to go, get a new home at the next boundary, so that no task waits for an
executor that will not take it.

A query of ours calls `boundary` from its own thread before each batch. For any other, `watch` does
it from a thread of its own, many times a second while there is a wish.
"""

import logging
import threading
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

import numpy as np
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from penstock.allocation.problem import NOWHERE, AllocationProblem
from penstock.allocation.settle import settle
from penstock.control.actions import MigrationCost, Move
from penstock.errors import InvalidInput, Unavailable
from penstock.model.observation import GroupTraffic, KeyGroups
from penstock.model.plan import QueryPlan
from penstock.spark import handles
from penstock.spark.handles.messages import first_line
from penstock.spark.handles.state_stores import StoreLocations
from penstock.spark.measure.batch_work import TaskGroups
from penstock.spark.measure.key_groups import KeyGroupReader

log = logging.getLogger(__name__)

MOVE_LIMIT_S = 20.0  # a query without new rows runs no batch that could show a move
POLL_S = 0.05
WATCH_S = 0.1
PROGRESS_LIMIT_S = 30.0
NEIGHBOURS = 5  # batches before a move that say what one usually takes

Wish = tuple[str, int]  # component and key group


@dataclass(frozen=True)
class Moved:
    """What came of moves: which were seen to be true, and what they cost."""

    done: tuple[Move, ...]
    waiting: tuple[Move, ...]
    batch_id: int | None
    cost: MigrationCost
    took_s: float


class Placement:
    """The key groups of one running query."""

    def __init__(
        self, session: SparkSession, query: StreamingQuery, plan: QueryPlan | None = None,
        prefix: str = "", grouping: Callable[[int], TaskGroups | None] = lambda _: None,
    ) -> None:  # fmt: skip
        """`grouping` says which key groups the tasks of a batch worked on, if not one each."""
        self._session = session
        self._query = query
        self._locations = StoreLocations(session, query)
        self._reader = KeyGroupReader(session, query, plan, prefix, grouping)
        self._lock = threading.RLock()  # wishes: set by the loop, reported by the query's thread
        self._wishes: dict[Wish, str] = {}
        self._leaving: frozenset[str] = frozenset()
        self._active: frozenset[str] = frozenset()
        self._hosts: dict[str, str] = {}
        self._watcher: threading.Thread | None = None
        self._closed = threading.Event()
        self.rehomed = 0  # key groups whose executor was lost

    @property
    def components(self) -> tuple[str, ...]:
        """Names of the parts of the query that hold state, as far as batches have shown them."""
        return tuple(self._reader.held)

    def homes(self, component: str, key_groups: int) -> tuple[list[str], list[float]]:
        """Where the next batch should work on each key group, and what that usually takes.

        "" and nothing where neither is known yet.
        """
        held = self._reader.held.get(component)
        if held is None or held.stores.key_groups != key_groups:
            return [""] * key_groups, [0.0] * key_groups
        with self._lock:
            wishes = dict(self._wishes)
        found = [
            wishes.get((component, group)) or self._locations.find(held.stores, group)
            for group in range(key_groups)
        ]
        return found, held.usual_s.tolist()

    def observe(self) -> dict[str, KeyGroups]:
        """Run time in the newest batch, size and place of all key groups, by component."""
        self.refresh()
        return {
            name: KeyGroups(
                held.run_time_s.copy(), self._reader.state_bytes(name), held.executor.copy()
            )
            for name, held in self._reader.held.items()
        }

    def traffic(self) -> tuple[GroupTraffic, ...]:
        """Bytes between key groups of consecutive components, in the newest batch that ended."""
        return self._reader.traffic()

    def move(self, moves: Sequence[Move], limit_s: float = MOVE_LIMIT_S) -> Moved:
        """Move key groups, and wait until tasks were seen to run where they should."""
        began_s = time.monotonic()
        self.refresh()
        self._check(moves)
        wanted = {(move.component, move.key_group): move for move in moves}
        size = {name: self._reader.state_bytes(name) for name in {m.component for m in moves}}
        usual_s = {wish: float(self._reader.held[wish[0]].usual_s[wish[1]]) for wish in wanted}
        waiting = {wish for wish, move in wanted.items() if not self._true(wish, move.node)}
        with self._lock:
            self._wishes |= {wish: wanted[wish].node for wish in waiting}
        load_s: dict[Wish, float] = {}
        batch_id: int | None = None
        while waiting and time.monotonic() - began_s < limit_s and self._query.isActive:
            if self._closed.wait(POLL_S):
                break
            self.refresh()
            for wish in [one for one in waiting if self._true(one, wanted[one].node)]:
                batch_id = self._reader.newest
                waiting.remove(wish)
                ran_s = float(self._reader.held[wish[0]].run_time_s[wish[1]])
                load_s[wish] = max(0.0, ran_s - usual_s[wish])
        with self._lock:
            for wish in waiting:  # given up: the plan of the next period may be another
                self._wishes.pop(wish, None)
        cost = MigrationCost(
            len(load_s), float(sum(size[name][group] for name, group in load_s)),
            sum(load_s.values()), self._delay_s(batch_id),
        )  # fmt: skip
        done = tuple(move for wish, move in wanted.items() if wish not in waiting)
        left = tuple(wanted[wish] for wish in sorted(waiting))
        return Moved(done, left, batch_id, cost, time.monotonic() - began_s)

    def evacuate(self, executors: Collection[str], limit_s: float = MOVE_LIMIT_S) -> Moved:
        """Bring all key groups away from executors that are about to be removed.

        From now on none is given a home there, until `stay` is called.
        """
        with self._lock:
            self._leaving |= frozenset(executors)
        self.refresh()
        stay = handles.active_executor_ids(self._session) - self._leaving
        if not stay:
            raise Unavailable("No executor would be left to hold the key groups.")
        return self.move(self._new_homes(stay), limit_s)

    def stay(self) -> None:
        """Forget which executors were about to be removed: they are gone, or stay after all."""
        with self._lock:
            self._leaving = frozenset()

    def boundary(self) -> None:
        """Between two batches: give lost key groups a home, and report all wishes to the driver."""
        active = handles.active_executor_ids(self._session)
        if not self._reader.held:
            self.refresh()
        with self._lock:
            if active != self._active and self._reader.held:
                self._rehome(active)
                self._active = active
            for (component, group), node in self._wishes.items():
                if node not in self._hosts:
                    self._hosts = {one.id: one.host for one in handles.executors(self._session)}
                if node in self._hosts:
                    stores = self._reader.held[component].stores
                    self._locations.report(stores, group, self._hosts[node], node)

    def watch(self) -> None:
        """Do what `boundary` does from a thread, for queries that do not call it."""
        self._watcher = threading.Thread(
            target=self._keep_watch, name="penstock-placement", daemon=True
        )
        self._watcher.start()

    def close(self) -> None:
        """Wait for nothing any more, and end the thread of `watch` if there is one."""
        self._closed.set()
        if self._watcher is not None:
            self._watcher.join(timeout=10)

    def _keep_watch(self) -> None:
        while not self._closed.wait(WATCH_S):
            try:
                if not self._query.isActive:
                    return
                self.refresh()
                self.boundary()
            except Exception as error:  # noqa: BLE001 - the query goes on as it is
                log.warning("placement of %s: %s", self._query.name, first_line(error))

    def refresh(self) -> None:
        """Take in what batches showed; wishes that came true are no longer reported."""
        self._reader.read()
        with self._lock:
            for wish, node in list(self._wishes.items()):
                if self._true(wish, node):
                    del self._wishes[wish]

    def _true(self, wish: Wish, node: str) -> bool:
        held = self._reader.held.get(wish[0])
        return held is not None and str(held.executor[wish[1]]) == node

    def _check(self, moves: Sequence[Move]) -> None:
        active = handles.active_executor_ids(self._session)
        for move in moves:
            held = self._reader.held.get(move.component)
            if held is None:
                known = ", ".join(self.components) or "none yet"
                raise InvalidInput(
                    f"component is {move.component!r}; known components with state: {known}."
                )
            if not 0 <= move.key_group < held.stores.key_groups:
                raise InvalidInput(
                    f"key group {move.key_group} of {move.component!r} is not from 0 to "
                    f"{held.stores.key_groups - 1}."
                )
            if move.node not in active:
                raise InvalidInput(
                    f"node {move.node!r} takes no tasks; executors that do: "
                    f"{', '.join(sorted(active))}."
                )

    def _delay_s(self, batch_id: int | None) -> float:
        """By how much a batch took longer than those before it; NaN where that is not known."""
        deadline = time.monotonic() + PROGRESS_LIMIT_S
        while batch_id is not None and handles.last_batch(self._query) < batch_id:
            if time.monotonic() > deadline or not self._query.isActive:
                break
            time.sleep(POLL_S)  # its tasks are reported before the batch as a whole
        took_s = {
            progress.batchId: progress.durationMs.get("triggerExecution", 0) / 1e3
            for progress in self._query.recentProgress[-3 * NEIGHBOURS :]
        }
        before = [took_s[one] for one in sorted(took_s) if batch_id is None or one < batch_id]
        if batch_id not in took_s or not before:
            return float("nan")
        return took_s[batch_id] - float(np.median(before[-NEIGHBOURS:]))

    def _rehome(self, active: frozenset[str]) -> None:
        """Wishes for all key groups whose executor takes no more tasks."""
        stay = active - self._leaving
        moves = self._new_homes(stay) if stay else []
        for move in moves:
            self._wishes[move.component, move.key_group] = move.node
        if moves and self._active:
            self.rehomed += len(moves)
            log.info("%d key groups lost their executor and get another home", len(moves))

    def _new_homes(self, stay: frozenset[str]) -> list[Move]:
        """A home among `stay` for each key group that has none there; the heaviest go first."""
        nodes = sorted(stay)
        number = {node: index for index, node in enumerate(nodes)}
        wishes: list[Wish] = []
        load, home = [], []
        for name, held in self._reader.held.items():
            for group in range(held.stores.key_groups):
                at = self._wishes.get((name, group)) or self._locations.find(held.stores, group)
                wishes.append((name, group))
                load.append(float(held.usual_s[group]))
                home.append(number.get(at, NOWHERE))
        if not wishes:
            return []
        problem = AllocationProblem(
            np.array(load), np.array(home, dtype=np.int64), np.ones(len(nodes)),
            np.zeros(len(nodes), dtype=bool), np.zeros(len(home)),
        )  # fmt: skip
        placed = settle(problem)
        lost = np.flatnonzero(problem.home == NOWHERE)
        return [Move(*wishes[row], nodes[placed[row]]) for row in lost]


def cannot_place(session: SparkSession) -> str:
    """Why key groups cannot be moved in a session; "" if they can."""
    if str(session.sparkContext.master).startswith("local"):
        return f"The master is {session.sparkContext.master}, which has one executor only."
    return handles.why_unavailable(session, handles.Family.LOCATE_STATE)
