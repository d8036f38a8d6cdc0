"""Where requests to a host come in: few at a time, in time, and short until it is known who asks.

A request longer than the first bytes has to begin with its token, as those of our clients do, so
that a stranger can make the host hold no more than these.
"""

import json
import re
import socket
import ssl
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from socketserver import StreamRequestHandler
from typing import Any

from penstock.connections import BoundedServer
from penstock.errors import InvalidInput, Unavailable

MOST_BYTES = 32 * 2**20
FIRST_BYTES = 4096  # read of anybody
KNOWN_LIMIT_S = 120.0  # for the rest of a request, once it is known whose it is
STRANGER = "the token is not this host's; ask its user."
_TOKEN_FIRST = re.compile(rb'\s*\{\s*"token"\s*:\s*"([^"\\]{1,256})"')

Answer = dict[str, Any]


def _line(answer: Answer) -> bytes:
    return json.dumps(answer).encode() + b"\n"


@dataclass(frozen=True)
class Door:
    """What is done with a request, and whether a token is one of those that may send long ones."""

    answer: Callable[[bytes], Answer]
    knows: Callable[[str], bool]

    def opened(self, host: str, port: int, context: ssl.SSLContext | None) -> BoundedServer:
        """A server at an address; encrypted, if there is a context."""
        bound = type("BoundHandler", (_Handler,), {"door": self})
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        kind = type("BoundServer", (_Server,), {"address_family": family, "context": context})
        server: BoundedServer = kind((host, port), bound)
        return server


class _Server(BoundedServer):
    full = _line({
        "refused": "too many connections to the host are open; ask again later.",
        "exit_code": Unavailable.exit_code,
    })  # fmt: skip
    context: ssl.SSLContext | None

    def get_request(self) -> tuple[socket.socket, Any]:
        """A connection; hands are shaken in its own thread, with the first line."""
        accepted, caller = super().get_request()
        if self.context is None:
            return accepted, caller
        return self.context.wrap_socket(
            accepted, server_side=True, do_handshake_on_connect=False
        ), caller  # fmt: skip


class _Handler(StreamRequestHandler):
    timeout = 30
    door: Door
    server: BoundedServer

    def handle(self) -> None:
        line = self.rfile.readline(FIRST_BYTES)
        if len(line) == FIRST_BYTES and not line.endswith(b"\n"):
            begun = _TOKEN_FIRST.match(line)
            if begun is None or not self.door.knows(begun[1].decode("utf-8", "replace")):
                self._refuse(STRANGER)
                return
            self.server.awaits(self.connection, KNOWN_LIMIT_S)
            line += self.rfile.readline(MOST_BYTES + 1 - FIRST_BYTES)
        self.server.awaits(self.connection, None)
        self.wfile.write(_line(self.door.answer(line)))

    def _refuse(self, sentence: str) -> None:
        """Say so, and let the rest run out unread: closed at once, the answer would be lost."""
        refusal = {"refused": sentence, "exit_code": InvalidInput.exit_code}
        with suppress(OSError):
            self.wfile.write(_line(refusal))
            plain = self.connection
            socket.socket.shutdown(plain, socket.SHUT_WR)
            while socket.socket.recv(plain, 65_536):
                pass  # until its time is over
