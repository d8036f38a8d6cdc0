"""A query whose source runner died or came up too late, or whose disk was full, starts again.

A source's runner is one process; when it is killed, Spark ends the query at its next word to it. On
a machine that is very busy it may also take longer to start than the 10 s that Spark waits for it.
On a full disk a query ends, and goes on once there is room: the whole program would take ten times
as long to start. Nothing is lost by that: offsets, admission log and commits are on the disk. Other
failures are the user's to see, and are not touched.
"""

import errno
import logging
import os
import threading
import time
from collections import defaultdict, deque
from collections.abc import Callable

from pyspark.sql.streaming.query import StreamingQuery

from penstock.errors import PenstockError
from penstock.model.topology import Topology
from penstock.model.user_code import holds_line
from penstock.spark import handles
from penstock.spark.handles.messages import Failure, failure_of
from penstock.spark.sinks.batch_writer import BatchFailure

log = logging.getLogger(__name__)

MOST_RESTARTS, WINDOW_S = 10, 600.0  # of a query
ROOM_LIMIT_S = 600.0
POLL_S = 0.25
NOT_CONNECTED = "connect back"  # Spark's words for a Python process that came up too late
# What the driver's side of a connection to a process that is gone says.
GONE = ("java.io.EOFException", "java.net.SocketException", "Broken pipe", "Connection reset")
NO_ROOM = "a disk was full"
FULL = tuple(os.strerror(number) for number in (errno.ENOSPC, errno.EDQUOT))


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
    ) -> None:
        """`room` says whether checkpoints can be written to."""
        self._queries, self._restart, self._room = queries, restart, room
        self._times: dict[str, deque[float]] = defaultdict(lambda: deque(maxlen=MOST_RESTARTS))
        self._full_since_s: dict[str, float] = {}
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
        """Whether a query has ended in a way it is brought back from."""
        if self._ended.is_set() or query.isActive:
            return False
        now_s, times = time.monotonic(), self._times[query.name]
        often = len(times) == MOST_RESTARTS and now_s - times[0] < WINDOW_S
        waited_s = now_s - self._full_since_s.get(query.name, now_s)
        return not often and waited_s < ROOM_LIMIT_S and _what_happened(query) is not None

    def look(self) -> None:
        """Start again what has ended and can go on."""
        for place, query in enumerate(self._queries()):
            if not self.will_restart(query) or self._waits_for_room(query):
                continue
            log.warning("query %s: %s; restarting the query", query.name, _what_happened(query))
            if self._restart(place):
                self._times[query.name].append(time.monotonic())
                self._full_since_s.pop(query.name, None)

    def _waits_for_room(self, query: StreamingQuery) -> bool:
        """Whether the disk that ended a query is still full."""
        if _what_happened(query) != NO_ROOM or self._room():
            return False
        if query.name not in self._full_since_s:
            self._full_since_s[query.name] = time.monotonic()
            log.warning(
                "query %s: the disk of its checkpoint is full; it goes on as soon as there is "
                "room, and fails if there is none within %g s", query.name, ROOM_LIMIT_S,
            )  # fmt: skip
        return True

    def _watch(self) -> None:
        while not self._ended.wait(POLL_S):
            try:
                self.look()
            except Exception as error:  # noqa: BLE001 - looking on must go on
                log.warning("checking whether queries need a restart failed: %s", error)


def _what_happened(query: StreamingQuery) -> str | None:
    """Why a query ended, if it is brought back from that."""
    causes = handles.failure_causes(query)
    if any(words in said for said in causes for words in FULL):
        return NO_ROOM
    innermost = causes[-1] if causes else ""
    if NOT_CONNECTED in innermost:
        return "a Python process took longer to start than Spark waits, on a machine that is busy"
    return "its source runner died" if any(sign in innermost for sign in GONE) else None
