"""A server with a thread for each connection: so their number has a bound, and each asks in time.

Whoever connects and says nothing would otherwise hold a thread of the driver for as long as it
likes, and a crowd of them all of its memory.
"""

import logging
import socket
import time
from contextlib import suppress
from socketserver import TCPServer, ThreadingMixIn
from threading import Lock
from typing import Any

log = logging.getLogger(__name__)

MOST_CONNECTIONS = 64  # at once; of the page half may be live
REQUEST_LIMIT_S = 10.0  # for a request to come to its end


class BoundedServer(ThreadingMixIn, TCPServer):
    """Refuses connections above a number, and ends those that do not ask in time."""

    daemon_threads = True
    block_on_close = False  # streams look every half second whether they should end
    allow_reuse_address = True
    request_queue_size = 128  # with the usual 5, a crowd at the door waits seconds for each retry
    full = b""  # what a connection too many is sent

    def __init__(self, address: tuple[str, int], handler: Any) -> None:
        self._lock = Lock()
        self._open: dict[Any, float] = {}  # by connection: until when it has to have asked
        super().__init__(address, handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        """Serve a connection in a thread of its own, unless there are too many."""
        with self._lock:
            full = len(self._open) >= MOST_CONNECTIONS
            if not full:
                self._open[request] = time.monotonic() + REQUEST_LIMIT_S
        if not full:
            super().process_request(request, client_address)
            return
        with suppress(OSError):
            request.settimeout(0.0)  # whoever takes nothing must not hold up the others
            request.send(self.full)
        self.shutdown_request(request)

    def shutdown_request(self, request: Any) -> None:
        """A connection is over."""
        with self._lock:
            self._open.pop(request, None)
        super().shutdown_request(request)

    def awaits(self, request: socket.socket, limit_s: float | None) -> None:
        """For how long a connection may go on asking; None while it is being answered."""
        with self._lock:
            if request in self._open:
                until_s = float("inf") if limit_s is None else time.monotonic() + limit_s
                self._open[request] = until_s

    def service_actions(self) -> None:
        """Now and then: end connections that hold a thread and do not ask."""
        now_s = time.monotonic()
        with self._lock:
            # With the lock, so that none of them is answered meanwhile.
            for request in [one for one, until_s in self._open.items() if until_s < now_s]:
                with suppress(OSError):
                    # Its thread then finds that it has ended. Below any encryption, whose own
                    # state belongs to that thread.
                    socket.socket.shutdown(request, socket.SHUT_RDWR)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A reader that went away is no news; the terminal belongs to the run."""
        log.debug("a request ended early", exc_info=True)
