"""The page's server, on loopback, in threads of its own; from the standard library."""

import logging
import socket
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from http.server import ThreadingHTTPServer
from importlib.resources import files
from typing import Any, Self

from penstock.control.history.store import HistoryStore
from penstock.dashboard.handler import Act, Handler, Hosted, Shared
from penstock.dashboard.safety import LOOPBACK
from penstock.errors import Unavailable

log = logging.getLogger(__name__)

MOST_CONNECTIONS = 64  # at once; half of them may be live pages
REQUEST_LIMIT_S = 10.0  # for a request to come to its end
FULL = (
    b"HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/json; charset=utf-8\r\n"
    b"Connection: close\r\nRetry-After: 10\r\nContent-Length: 44\r\n\r\n"
    b'{"error": "too many connections are open."}\n'
)


def assets() -> dict[str, bytes]:
    """The page's files by name; whatever is not among them does not exist."""
    folder = files("penstock.dashboard") / "assets"
    return {item.name: item.read_bytes() for item in folder.iterdir() if item.is_file()}


class Dashboard:
    """The server over one history, as a context manager.

    `acts` are what a person may do from the page, by name; without any, nothing there acts. They
    need the token; if `private`, so does reading. `hosted` says what a host runs, by community.
    """

    def __init__(
        self,
        store: HistoryStore,
        port: int = 0,
        token: str | None = None,
        acts: Mapping[str, Act] | None = None,
        private: bool = False,
        hosted: Hosted | None = None,
    ) -> None:
        self.acts = dict(acts or {})
        self._shared = Shared(store, assets(), self.acts, token, private, hosted)
        handler = type("BoundHandler", (Handler,), {"shared": self._shared})
        try:
            self._server = _Server((LOOPBACK, port), handler)
        except OSError as error:
            raise Unavailable(
                f"port {port} of {LOOPBACK} cannot be used: {error.strerror}; give another with "
                "--port, or 0 for any."
            ) from error
        self.port = self._shared.port = int(self._server.server_address[1])
        self._thread = threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.1},
            name="penstock-dashboard", daemon=True,
        )  # fmt: skip

    @property
    def url(self) -> str:
        """Where the page is; the part after # stays in the browser."""
        shared = self._shared
        end = f"#token={shared.token}" if shared.token and (shared.acts or shared.private) else ""
        return f"http://{LOOPBACK}:{self.port}/{end}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._shared.stopping.set()
        self._server.shutdown()
        self._thread.join(timeout=5)
        self._server.server_close()


class _Server(ThreadingHTTPServer):
    """A thread for each connection: so their number has a bound, and each must ask in time."""

    daemon_threads = True
    block_on_close = False  # streams look every half second whether they should end
    allow_reuse_address = True
    request_queue_size = 128  # with the usual 5, a crowd at the door waits seconds for each retry

    def __init__(self, address: tuple[str, int], handler: type[Handler]) -> None:
        self._lock = threading.Lock()
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
            request.send(FULL)
        self.shutdown_request(request)

    def shutdown_request(self, request: Any) -> None:
        """A connection is over."""
        with self._lock:
            self._open.pop(request, None)
        super().shutdown_request(request)

    def awaits(self, request: socket.socket, waiting: bool) -> None:
        """Whether a connection is to ask for something, or is being answered."""
        with self._lock:
            if request in self._open:
                limit_s = REQUEST_LIMIT_S if waiting else float("inf")
                self._open[request] = time.monotonic() + limit_s

    def service_actions(self) -> None:
        """Now and then: end connections that hold a thread and do not ask."""
        now_s = time.monotonic()
        with self._lock:
            # With the lock, so that none of them is answered meanwhile.
            for request in [one for one, until_s in self._open.items() if until_s < now_s]:
                with suppress(OSError):
                    request.shutdown(socket.SHUT_RDWR)  # its thread then finds that it has ended

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A reader that went away is no news; the terminal belongs to the run."""
        log.debug("a request ended early", exc_info=True)
