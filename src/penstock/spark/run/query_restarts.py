"""A query whose source runner died or came up too late, or whose disk was full, starts again.

A source's runner is one process; when it is killed, Spark ends the query at its next word to it. On
a machine that is very busy it may also take longer to start than the 10 s that Spark waits for it.
On a full disk a query ends, and goes on once there is room: the whole program would take ten times
as long to start. Nothing is lost by that: offsets, admission log and commits are on the disk. Other
failures are the user's to see, and are not touched.
"""

import logging
import threading
import time
from collections import defaultdict, deque
from collections.abc import Callable
from dataclasses import replace

from pyspark.sql.streaming.query import StreamingQuery

from penstock.errors import PenstockError
from penstock.model.topology import Topology
from penstock.model.user_code import holds_line
from penstock.spark import handles
from penstock.spark.handles.messages import Failure, failure_of, first_line
from penstock.spark.run.full_disk import FullDisk, says_full
from penstock.spark.sinks.batch_writer import BatchFailure

log = logging.getLogger(__name__)

MOST_RESTARTS, WINDOW_S = 10, 600.0  # of a query, for other reasons than a full disk
ROOM_LIMIT_S = 600.0  # without a batch that went through
POLL_S = 0.25
NOT_CONNECTED = "connect back"  # Spark's words for a Python process that came up too late
# What the driver's side of a connection to a process that is gone says.
GONE = ("java.io.EOFException", "java.net.SocketException", "Broken pipe", "Connection reset")
NO_ROOM = "a disk was full"


def query_failure(
    query: str, error: BaseException, batch: BatchFailure | None, topology: Topology
) -> PenstockError:
    """What to raise; `batch` is what its writer saw, if it failed while a batch was written."""
    found = failure_of(error if batch is None else batch.error)
    where = "" if batch is None else f" in batch {batch.batch_id}"
    sink = "" if batch is None or batch.sink is None else f"sink {batch.sink!r}: function: "
    whose = sink or _operators(found, topology)
    if "operator " in found.said:  # ours have said it already
        whose = ""
    return PenstockError(f"query {query!r} failed{where}: {whose}{found}")


def _operators(found: Failure, topology: Topology) -> str:
    """The operators whose code or query a failure came from."""
    names = []
    for operator in topology.ordered():
        if operator.sql is not None:
            mine = found.sql is not None and found.sql in operator.sql
        else:
            mine = found.file is not None and holds_line(
                operator.function, found.file, found.line or 0
            )
        if mine:
            names.append(repr(operator.name))
    return f"operator {' or '.join(names)}: " if names else ""


class QueryRestarts:
    """Looks after the queries of a run, in a thread of its own."""

    def __init__(
        self,
        queries: Callable[[], list[StreamingQuery]],
        restart: Callable[[int], bool],
        room: Callable[[], bool],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`room` says whether checkpoints and sinks can be written to."""
        self._queries, self._restart, self._room, self._clock = queries, restart, room, clock
        self._times: dict[str, deque[float]] = defaultdict(lambda: deque(maxlen=MOST_RESTARTS))
        self._full: dict[str, FullDisk] = {}
        self._starting: str | None = None  # the query that is being started again
        self._ended = threading.Event()
        self._thread = threading.Thread(
            target=self._watch, name="penstock-query-restarts", daemon=True
        )

    def start(self) -> None:
        """Begin to look."""
        self._thread.start()

    def stop(self) -> None:
        """No query is started again from now on."""
        self._ended.set()

    def will_restart(self, query: StreamingQuery) -> bool:
        """Whether a query has failed, or is just failing, in a way it is brought back from."""
        if self._ended.is_set():
            return False
        happened, now_s = _what_happened(query), self._clock()
        if happened is None or self._starting == query.name:
            return happened is not None
        if happened == NO_ROOM:
            full = self._full.get(query.name)
            return full is None or now_s - full.since_s < ROOM_LIMIT_S
        times = self._times[query.name]
        return len(times) < MOST_RESTARTS or now_s - times[0] >= WINDOW_S

    def look(self) -> None:
        """Start again what has ended and can go on."""
        for place, query in enumerate(self._queries()):
            try:
                self._look_at(place, query)
            except Exception as error:  # noqa: BLE001 - looking on must go on
                log.warning(
                    "query %s could not be looked at or started again: %s",
                    query.name, first_line(error),
                )  # fmt: skip

    def _look_at(self, place: int, query: StreamingQuery) -> None:
        if query.isActive:
            self._note_room(query)
            return
        if not self.will_restart(query):
            return
        happened = _what_happened(query)
        if happened == NO_ROOM and not self._may_have_room(query):
            return
        log.warning("query %s: %s; restarting the query", query.name, happened)
        self._starting = query.name
        # Counted before: a start that fails is an attempt as well.
        if happened == NO_ROOM:
            self._full[query.name] = self._full[query.name].tried(self._clock())
        else:
            self._times[query.name].append(self._clock())
        try:
            self._restart(place)
        finally:
            self._starting = None

    def _may_have_room(self, query: StreamingQuery) -> bool:
        """Whether another try is worth it: what can be asked has room, and the pause is over."""
        now_s = self._clock()
        full = self._full.setdefault(query.name, FullDisk(now_s, now_s))
        if now_s >= full.again_s:
            if self._room():
                return True
            full = full.put_off(now_s)
        if not full.told:
            log.warning(
                "query %s: a disk is full; the query goes on as soon as there is room, and fails "
                "if there is none within %g s", query.name, ROOM_LIMIT_S,
            )  # fmt: skip
        self._full[query.name] = replace(full, told=True)
        return False

    def _note_room(self, query: StreamingQuery) -> None:
        """A batch that went through had room; a query that then stays up has all it needs."""
        full = self._full.get(query.name)
        if full is None:
            return
        now_s, through = self._clock(), handles.last_batch(query) >= 0
        idle = now_s - full.again_s > ROOM_LIMIT_S
        if idle or (through and now_s >= full.again_s):
            del self._full[query.name]
        elif through:
            self._full[query.name] = replace(full, since_s=now_s)

    def _watch(self) -> None:
        while not self._ended.wait(POLL_S):
            self.look()


def _what_happened(query: StreamingQuery) -> str | None:
    """Why a query ended, if it is brought back from that."""
    causes = handles.failure_causes(query)
    if says_full(causes):
        return NO_ROOM
    innermost = causes[-1] if causes else ""
    if NOT_CONNECTED in innermost:
        return "a Python process took longer to start than Spark waits, on a machine that is busy"
    return "its source runner died" if any(sign in innermost for sign in GONE) else None
