"""How a host is spoken to: one JSON object on one line there, one back.

On loopback every request carries a token: the host's own, which is in a file that only its user
can read, or that of a member of a community. Where others can reach it, it is spoken to over TLS
only, and the host's own token is not accepted.
"""

import hmac
import ipaddress
import json
import os
import secrets
import socket
import ssl
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from penstock.documents import parse_document
from penstock.errors import Infeasible, InvalidInput, PenstockError, Unavailable, documented
from penstock.spark.checkpoint.durable_files import write_atomically
from penstock.spark.checkpoint.sealed import read_sealed
from penstock.spark.cluster.standing import state_directory
from penstock.spark.cluster.supervisor import process_started
from penstock.spark.host.communities import OWNER, Caller
from penstock.spark.host.door import MOST_BYTES, STRANGER, Answer, Door

LOOPBACK = "127.0.0.1"
ANSWER_LIMIT_S = 180.0  # a submission is checked, and a topology ends between two batches
NO_HOST = "No host runs; start one with `penstock host`."
_ERRORS = {kind.exit_code: kind for kind in (InvalidInput, Infeasible, Unavailable)}

Handle = Callable[[Mapping[str, Any], Caller], Answer]
Known = Callable[[str], Caller | None]


@dataclass(frozen=True)
class Address:
    """Where a host listens; `started` tells its process from a later one with the same number."""

    port: int
    pid: int
    started: int | float | str
    directory: str
    token: str = field(repr=False)
    host: str = LOOPBACK
    certificate: str | None = None  # of whoever signed that of the host; None: those known here


@dataclass(frozen=True)
class Listen:
    """A further address to listen at: encrypted, unless it is on loopback."""

    host: str
    port: int
    certificate: Path | None = None
    key: Path | None = None

    @documented("host")
    def context(self) -> ssl.SSLContext | None:
        """How it is encrypted; None on loopback without a certificate."""
        if self.certificate is None:
            if not is_loopback(self.host):
                raise InvalidInput(
                    f"--listen is {self.host}:{self.port}, which others can reach: give a "
                    "--certificate, and its --key, so that tokens are not sent in the clear."
                )
            return None
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        try:
            context.load_cert_chain(self.certificate, self.key)
        except (OSError, ssl.SSLError) as error:
            raise InvalidInput(
                f"--certificate {self.certificate} cannot be used: {error.strerror or error}."
            ) from error
        return context


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach an address."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


@documented("host")
def host_and_port(text: str, field: str) -> tuple[str, int]:
    """An address as people write it.

    >>> host_and_port("10.0.0.7:7700", "--listen")
    ('10.0.0.7', 7700)
    """
    host, _, port = text.rpartition(":")
    if not host or not port.isdigit() or int(port) > 65_535:
        raise InvalidInput(f"{field} is {text!r}; write ADDRESS:PORT, as in 10.0.0.7:7700.")
    return host.strip("[]"), int(port)


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
    """Answers requests until it is closed; each in a thread of its own, of which few are."""

    def __init__(
        self, handle: Handle, directory: Path, known: Known = lambda _: None,
        listen: Listen | None = None,
    ) -> None:  # fmt: skip
        self._handle, self._known, self._token = handle, known, secrets.token_urlsafe(32)
        self._directory = directory
        local = Door(
            lambda line: self.answer(line, local=True),
            lambda token: self._found(token, local=True) is not None,
        )
        self._servers = [local.opened(LOOPBACK, 0, None)]
        if listen is not None:
            context = listen.context()
            try:
                door = Door(self.answer, lambda token: self._found(token, local=False) is not None)
                outside = door.opened(listen.host, listen.port, context)
            except OSError as error:
                self._servers[0].server_close()
                raise Unavailable(
                    f"--listen {listen.host}:{listen.port} cannot be used: {error.strerror}."
                ) from error
            self._servers.append(outside)

    @property
    def ports(self) -> tuple[int, ...]:
        """On loopback, and where others can reach it."""
        return tuple(int(server.server_address[1]) for server in self._servers)

    def __enter__(self) -> "MessageServer":
        for server in self._servers:
            threading.Thread(target=server.serve_forever, args=(0.1,), daemon=True).start()
        pid = os.getpid()
        started = process_started(pid)
        assert started is not None, "this process is there"
        address = Address(self.ports[0], pid, started, str(self._directory), self._token)
        write_atomically(address_file(), vars(address))
        return self

    def __exit__(self, *_: object) -> None:
        address_file().unlink(missing_ok=True)
        for server in self._servers:
            server.shutdown()
            server.server_close()

    def answer(self, line: bytes, local: bool = False) -> Answer:
        """What comes back for a line, whatever it holds."""
        try:
            if len(line) > MOST_BYTES:
                raise InvalidInput(f"the request is longer than {MOST_BYTES >> 20} MB.")
            request = parse_document(line, "the request")
            return {"answer": self._handle(request, self._caller(request.get("token"), local))}
        except PenstockError as error:
            return {"refused": str(error), "exit_code": error.exit_code}
        except Exception as error:  # noqa: BLE001 - one request must not end the host
            return {"refused": f"the host failed: {type(error).__name__}: {error}", "exit_code": 1}

    def _caller(self, token: object, local: bool) -> Caller:
        found = self._found(token, local) if isinstance(token, str) else None
        if found is None:
            raise InvalidInput(STRANGER)
        return found

    def _found(self, token: str, local: bool) -> Caller | None:
        own = hmac.compare_digest(token.encode("utf-8", "replace"), self._token.encode())
        return OWNER if own and local else self._known(token)


@documented("host")
def ask(address: Address, request: Mapping[str, Any]) -> Answer:
    """The host's answer; what it refuses is raised here as it was there."""
    # The token first: a host reads no more than the beginning before it knows who asks.
    line = json.dumps({"token": address.token, **request}).encode() + b"\n"
    try:
        with _connected(address) as connection:
            connection.sendall(line)
            with connection.makefile("rb") as stream:
                got = json.loads(stream.readline())
    except (OSError, ValueError) as error:
        see = f"; see {address.directory}" if address.directory else ""
        raise Unavailable(f"the host does not answer ({error}){see}.") from error
    if "refused" in got:
        raise _ERRORS.get(int(got["exit_code"]), PenstockError)(str(got["refused"]))
    answer: Answer = got["answer"]
    return answer


def _connected(address: Address) -> socket.socket:
    plain = socket.create_connection((address.host, address.port), ANSWER_LIMIT_S)
    if is_loopback(address.host) and address.certificate is None:
        return plain
    try:
        context = ssl.create_default_context(cafile=address.certificate)
        return context.wrap_socket(plain, server_hostname=address.host)
    except BaseException:
        plain.close()
        raise
