"""The page's server, on loopback, in threads of its own; from the standard library."""

import threading
from collections.abc import Mapping
from http.server import HTTPServer
from importlib.resources import files
from typing import Self

from penstock.connections import BoundedServer
from penstock.control.history.store import HistoryStore
from penstock.dashboard.handler import Act, Handler, Hosted, Shared
from penstock.dashboard.safety import LOOPBACK
from penstock.errors import Unavailable

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


class _Server(BoundedServer, HTTPServer):
    """The page's, with its own words for a connection too many."""

    full = FULL
