"""How a host is spoken to: one JSON object on one line there, one back, over loopback.

Every request carries the token of the host, which is in a file that only its user can read.
"""

import hmac
import json
import os
import secrets
import socket
import socketserver
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from penstock.documents import parse_document
from penstock.errors import Infeasible, InvalidInput, PenstockError, Unavailable
from penstock.spark.checkpoint.durable_files import write_atomically
from penstock.spark.checkpoint.sealed import read_sealed
from penstock.spark.cluster.standing import state_directory
from penstock.spark.cluster.supervisor import process_started

LOOPBACK = "127.0.0.1"
MOST_BYTES = 32 * 2**20
ANSWER_LIMIT_S = 180.0  # a submission is checked, and a topology ends between two batches
NO_HOST = "No host runs; start one with `penstock host`."
_ERRORS = {kind.exit_code: kind for kind in (InvalidInput, Infeasible, Unavailable)}

Answer = dict[str, Any]
Handle = Callable[[Mapping[str, Any]], Answer]


@dataclass(frozen=True)
class Address:
    """Where a host listens; `started` tells its process from a later one with the same number."""

    port: int
    pid: int
    started: int | float | str
    directory: str
    token: str = field(repr=False)


def address_file() -> Path:
    """One host for each user."""
    return state_directory() / "host.json"


def read_address() -> Address:
    """The host that runs; Unavailable where there is none."""
    try:
        known = Address(**read_sealed(address_file()))
    except (OSError, ValueError, TypeError) as error:
        raise Unavailable(NO_HOST) from error
    if process_started(known.pid) != known.started:
        raise Unavailable(NO_HOST)
    return known


class MessageServer:
    """Answers requests until it is closed; each in a thread of its own."""

    def __init__(self, handle: Handle, directory: Path) -> None:
        self._handle, self._token = handle, secrets.token_urlsafe(32)
        outer = self

        class Handler(socketserver.StreamRequestHandler):
            timeout = 30

            def handle(self) -> None:
                line = self.rfile.readline(MOST_BYTES + 1)
                self.wfile.write(json.dumps(outer.answer(line)).encode() + b"\n")

        class Server(socketserver.ThreadingTCPServer):
            daemon_threads = True
            allow_reuse_address = True

            def handle_error(self, request: Any, client_address: Any) -> None:
                """A caller that went away is nobody's failure."""

        self._server = Server((LOOPBACK, 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._directory = directory

    def __enter__(self) -> "MessageServer":
        self._thread.start()
        pid = os.getpid()
        started = process_started(pid)
        assert started is not None, "this process is there"
        address = Address(
            self._server.server_address[1], pid, started, str(self._directory), self._token
        )
        write_atomically(address_file(), vars(address))
        return self

    def __exit__(self, *_: object) -> None:
        address_file().unlink(missing_ok=True)
        self._server.shutdown()
        self._server.server_close()

    def answer(self, line: bytes) -> Answer:
        """What comes back for a line, whatever it holds."""
        try:
            if len(line) > MOST_BYTES:
                raise InvalidInput(f"the request is longer than {MOST_BYTES >> 20} MB.")
            request = parse_document(line, "the request")
            token = request.get("token")
            if not isinstance(token, str) or not hmac.compare_digest(
                token.encode("utf-8", "replace"), self._token.encode()
            ):
                raise InvalidInput("the token is not this host's; ask its user.")
            return {"answer": self._handle(request)}
        except PenstockError as error:
            return {"refused": str(error), "exit_code": error.exit_code}
        except Exception as error:  # noqa: BLE001 - one request must not end the host
            return {"refused": f"the host failed: {type(error).__name__}: {error}", "exit_code": 1}


def ask(address: Address, request: Mapping[str, Any]) -> Answer:
    """The host's answer; what it refuses is raised here as it was there."""
    line = json.dumps({**request, "token": address.token}).encode() + b"\n"
    try:
        with socket.create_connection((LOOPBACK, address.port), ANSWER_LIMIT_S) as connection:
            connection.sendall(line)
            with connection.makefile("rb") as stream:
                got = json.loads(stream.readline())
    except (OSError, ValueError) as error:
        raise Unavailable(
            f"the host does not answer ({error}); see {address.directory}."
        ) from error
    if "refused" in got:
        raise _ERRORS.get(int(got["exit_code"]), PenstockError)(str(got["refused"]))
    answer: Answer = got["answer"]
    return answer
