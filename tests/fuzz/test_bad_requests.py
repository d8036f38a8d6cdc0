"""Malformed requests to the page and to a host, by the hundred; as of test_bad_input.py.

Whoever has the token gets further, so most of them carry it.
"""

import json
import socket
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

from contract.fake_runner import FakeRunner
from dashboard.histories import make
from fuzz.attempts import EACH, refused_or_done, some_of_both
from fuzz.malformed import Malformed
from penstock.cli.dashboard import Controls, HostControls
from penstock.dashboard.server import Dashboard
from penstock.errors import PenstockError
from penstock.spark.host.communities import OWNER
from penstock.spark.host.host import Host
from penstock.spark.host.messages import MessageServer
from penstock.spark.host.registry import Registry

TOKEN = "a-token-of-the-page"
ENDS = b"Host: 127.0.0.1:%d\r\nConnection: close\r\n\r\n"
ACTS = b"Host: 127.0.0.1:%d\r\nAuthorization: Bearer " + TOKEN.encode() + b"\r\n"
LOOKS = (
    b"/api/runs?run=1&since=0", b"/api/runs/1", b"/api/runs/1?since=0&until=2e9",
    b"/api/runs/1/why?at=1750000005", b"/api/runs/1/totals", b"/metrics", b"/", b"/api/topologies",
)  # fmt: skip
NAMES = (b"advice-only", b"stop", b"restart")
BODIES = (b'{"on": true}', b'{"name": "a"}', b'{"name": "a", "on": null}')


class FakeRun:
    """A run that is asked to only advise."""

    def advise_only(self, on: bool) -> None:
        assert isinstance(on, bool)


def looking(path: bytes) -> bytes:
    """A request as the page sends it; the place for its port is left open."""
    return b"GET " + path + b" HTTP/1.1\r\n" + ENDS


def acting(name: bytes, body: bytes) -> bytes:
    """The same, with the token and a body."""
    length = str(len(body)).encode()
    return (
        b"POST /api/acts/" + name + b" HTTP/1.1\r\n" + ACTS
        + b"Content-Type: application/json\r\nContent-Length: " + length
        + b"\r\nConnection: close\r\n\r\n" + body
    )  # fmt: skip


def requests() -> list[bytes]:
    """All that there are."""
    return [looking(path) for path in LOOKS] + [acting(act, b) for act in NAMES for b in BODIES]


def almost_right(malformed: Malformed) -> bytes:
    """A request with a wrong value only, which gets further than one with wrong bytes."""
    if malformed.choice((True, False)):
        path = malformed.choice(LOOKS).partition(b"?")[0]
        named = malformed.choice(("since", "until", "at", "after", "run"))
        return looking(path + b"?" + urlencode({named: malformed.value()}).encode())
    body = json.dumps(malformed.mutated({"on": True, "name": "a"})).encode()
    return acting(malformed.choice(NAMES), body)


@pytest.fixture
def host(tmp_path: Path) -> Any:
    with Registry(tmp_path / "host") as registry:
        made = Host(registry, FakeRunner())
        made.handle(SUBMIT)
        yield made
        made.end()


SUBMIT = {
    "do": "submit",
    "submission": {"name": "a", "file": "f.py", "topology": "", "files": {"f.py": "x = 1"}},
}
MESSAGES: tuple[dict[str, Any], ...] = (
    SUBMIT, {"do": "ps"}, {"do": "explain"}, {"do": "logs", "name": "a", "lines": 5},
    {"do": "results", "name": "a", "sink": None, "rows": 2}, {"do": "stop", "name": "a"},
    {"do": "restart", "name": "a"}, {"do": "communities"}, {"do": "forget-community", "name": "c"},
    {"do": "community", "name": "c", "quota": {"least": 0, "most": 2}, "add": ["ada"],
     "remove": []},
)  # fmt: skip


def test_requests_to_the_page(
    tmp_path: Path, host: Host, capfd: pytest.CaptureFixture[str]
) -> None:
    controls: Any = Controls(TOKEN)
    controls.run = FakeRun()
    acts = {**controls.acts(), **HostControls(TOKEN, host).acts()}
    store, _ = make(tmp_path)
    seen = set[bytes]()
    with store, Dashboard(store, token=TOKEN, acts=acts, hosted=host.by_community) as page:
        for whole in requests():
            assert b" 404 " not in _asked(page.port, _to(whole, page.port)), whole
        for seed in range(EACH):
            malformed = Malformed(seed)
            if seed % 2:
                sent = _to(almost_right(malformed), page.port)
            else:
                sent = malformed.bytes_of(_to(malformed.choice(requests()), page.port))
            answer = _asked(page.port, sent)
            status = b"".join(answer.split(b"\r\n")[0].split(b" ")[1:2])
            assert not answer.startswith(b"HTTP/") or status != b"500", (seed, sent, answer[:500])
            seen.add(status)
        assert b" 200 " in _asked(page.port, _to(requests()[5], page.port))
    assert {b"200", b"400"} <= seen
    assert "Traceback" not in capfd.readouterr().err


def _to(request: bytes, port: int) -> bytes:
    return request.replace(b"%d", str(port).encode())


def _asked(port: int, sent: bytes) -> bytes:
    with socket.create_connection(("127.0.0.1", port), timeout=120) as connection:
        connection.sendall(sent)
        connection.shutdown(socket.SHUT_WR)
        answer = b""
        try:
            while part := connection.recv(65536):
                answer += part
                if b"text/event-stream" in answer:
                    break  # it goes on for as long as somebody reads
        except (ConnectionResetError, TimeoutError):
            pass
    return answer


def test_messages_to_a_host(tmp_path: Path, host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    server = MessageServer(host.handle, tmp_path, lambda token: OWNER if token == TOKEN else None)
    refused = answered = 0
    try:
        for seed in range(EACH):
            malformed = Malformed(seed)
            request = malformed.mutated(malformed.choice(MESSAGES))
            if isinstance(request, dict):
                request = {"token": TOKEN, **request}
            line = json.dumps(request).encode()
            if seed % 4 == 0:
                line = malformed.bytes_of(line)

            def attempt(line: bytes = line) -> None:
                got = server.answer(line)
                json.dumps(got)
                if "refused" in got:
                    assert not got["refused"].startswith("the host failed"), got
                    raise PenstockError(got["refused"])

            if refused_or_done(attempt, seed, line):
                refused += 1
            else:
                answered += 1
    finally:
        for one in server._servers:
            one.server_close()
    some_of_both(refused)
    assert answered > 0, "nothing was answered"
