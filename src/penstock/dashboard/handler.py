"""What the page's server answers: a few addresses, by name and number; nothing else exists."""

import json
import logging
import re
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from typing import Any, ClassVar
from urllib.parse import parse_qs, urlsplit

from penstock import connections
from penstock.control.history.store import HistoryStore
from penstock.control.history.tail import Position
from penstock.control.history.totals import totals
from penstock.dashboard.metrics import CONTENT_TYPE, exposition
from penstock.dashboard.safety import HEADERS, may_act, may_read, reading_cookie, refusal
from penstock.dashboard.stream import events, hosted_events
from penstock.dashboard.view import (
    Range,
    record_of,
    run_document,
    run_list,
    why_document,
)
from penstock.documents import plain
from penstock.errors import InvalidInput, PenstockError

log = logging.getLogger(__name__)

KINDS = {
    "html": "text/html; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "svg": "image/svg+xml",
}
JSON = "application/json; charset=utf-8"
MOST_STREAMS = 32
MOST_BODY_BYTES = 4_096

Act = Callable[[Mapping[str, Any]], Mapping[str, Any]]
Hosted = Callable[[], Mapping[str, Any]]  # communities and their topologies


@dataclass
class Shared:
    """What all requests to one server see."""

    store: HistoryStore
    assets: Mapping[str, bytes]
    acts: Mapping[str, Act]
    token: str | None
    private: bool = False  # whether reading needs the token too
    hosted: Hosted | None = None
    port: int = 0
    stopping: threading.Event = field(default_factory=threading.Event)
    streams: threading.BoundedSemaphore = field(
        default_factory=lambda: threading.BoundedSemaphore(MOST_STREAMS)
    )


class Refused(Exception):
    """An answer other than 200, with a sentence."""

    def __init__(self, status: HTTPStatus, sentence: str) -> None:
        super().__init__(sentence)
        self.status = status


class Handler(BaseHTTPRequestHandler):
    shared: ClassVar[Shared]
    protocol_version = "HTTP/1.1"
    server_version = "penstock"
    sys_version = ""
    timeout = 60  # of a reader that takes nothing; the server ends those that do not ask
    _answered = False  # whether the request at hand has got its first line already

    def handle_one_request(self) -> None:
        """The next request of a connection."""
        self._awaits_request(True)
        super().handle_one_request()

    def _awaits_request(self, waiting: bool) -> None:
        limit_s = connections.REQUEST_LIMIT_S if waiting else None
        self.server.awaits(self.connection, limit_s)  # type: ignore[attr-defined]

    def do_GET(self) -> None:
        """Look at something."""
        self._answer(self._look)

    def do_HEAD(self) -> None:
        """As GET, without the content."""
        self._answer(self._look)

    def do_POST(self) -> None:
        """Do something; needs the token."""
        self._answer(self._act)

    def _answer(self, respond: Callable[[str, Mapping[str, str]], None]) -> None:
        self._answered = False
        try:
            reason = refusal(self.headers, self.shared.port)  # type: ignore[arg-type]
            if reason is not None:
                raise Refused(HTTPStatus.FORBIDDEN, reason)
            respond(*_address(self.path))
        except Refused as refused:
            self._fail(str(refused), refused.status)
        except InvalidInput as error:
            self._fail(str(error), HTTPStatus.BAD_REQUEST)
        except PenstockError as error:
            self._fail(str(error), HTTPStatus.SERVICE_UNAVAILABLE)
        except (BrokenPipeError, ConnectionResetError, TimeoutError):
            self.close_connection = True
        except Exception:  # the border: one request may fail, the page goes on
            log.exception("a request failed: %s", self.path)
            self._fail("the server failed; its log says how.", HTTPStatus.INTERNAL_SERVER_ERROR)

    def _fail(self, sentence: str, status: HTTPStatus) -> None:
        """A sentence, and the end of the connection: what is left of the request is unread."""
        self.close_connection = True
        if not self._answered:
            self._send_json({"error": sentence}, status)

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """What the library refuses, in our form and with our headers."""
        self.command = getattr(self, "command", None) or "GET"
        self._fail(f"{message or HTTPStatus(code).phrase}.", HTTPStatus(code))

    def _look(self, path: str, query: Mapping[str, str]) -> None:
        self._awaits_request(False)
        store = self.shared.store
        if path == "/":
            return self._send_asset("index.html")
        if found := re.fullmatch(r"/assets/([a-z_]+\.[a-z]+)", path):
            return self._send_asset(found[1])
        if not self._may_read():
            raise Refused(HTTPStatus.UNAUTHORIZED, "this page needs its token to be read.")
        if path == "/metrics":
            return self._send(exposition(store), CONTENT_TYPE)
        if path == "/api/runs":
            hosted = self.shared.hosted is not None
            document = {"runs": run_list(store), "acts": sorted(self.shared.acts)}
            return self._send_json(document | {"hosted": hosted})
        if path == "/api/topologies" and self.shared.hosted is not None:
            return self._stream(hosted_events(self.shared.hosted, self.shared.stopping))
        if path == "/api/events":
            return self._stream(self._events(None, Position()))
        if found := re.fullmatch(r"/api/runs/(\d{1,18})", path):
            wanted = Range(_moment(query, "since"), _moment(query, "until"))
            return self._send_json(run_document(store, self._run(found[1]), wanted))
        if found := re.fullmatch(r"/api/runs/(\d{1,18})/events", path):
            after = self.headers.get("Last-Event-ID") or query.get("after", str(Position()))
            return self._stream(self._events(self._run(found[1]), Position.parse(after)))
        if found := re.fullmatch(r"/api/runs/(\d{1,18})/why", path):
            moment = _moment(query, "at")
            return self._send_json(why_document(store, self._run(found[1]), moment))
        if found := re.fullmatch(r"/api/runs/(\d{1,18})/totals", path):
            return self._send_json(plain(totals(store, self._run(found[1]))))
        raise Refused(HTTPStatus.NOT_FOUND, "there is nothing at this address.")

    def _may_read(self) -> bool:
        shared = self.shared
        return not shared.private or may_read(
            self.headers,  # type: ignore[arg-type]
            shared.token or "",
            shared.port,
        )

    def _run(self, digits: str) -> int:
        run = int(digits)
        try:
            record_of(self.shared.store, run)
        except InvalidInput as error:
            raise Refused(HTTPStatus.NOT_FOUND, str(error)) from error
        return run

    def _act(self, path: str, query: Mapping[str, str]) -> None:
        body = self._body()
        self._awaits_request(False)
        if not may_act(self.headers, self.shared.token):  # type: ignore[arg-type]
            raise Refused(HTTPStatus.UNAUTHORIZED, "actions need this server's token.")
        if path == "/api/session":
            cookie = reading_cookie(self.shared.port, self.shared.token or "")
            self._send(b"{}", JSON, also={"Set-Cookie": cookie})
            return
        found = re.fullmatch(r"/api/acts/([a-z-]+)", path)
        act = self.shared.acts.get(found[1]) if found else None
        if act is None:
            raise Refused(HTTPStatus.NOT_FOUND, "there is no such action here.")
        self._send_json(act(body))

    def _body(self) -> Mapping[str, Any]:
        length = self.headers.get("Content-Length", "0")
        if not length.isdigit() or int(length) > MOST_BODY_BYTES:
            self.close_connection = True
            raise Refused(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "the request is too large.")
        content = self.rfile.read(int(length))
        try:
            body = json.loads(content or b"{}")
        except (ValueError, RecursionError) as error:
            raise Refused(HTTPStatus.BAD_REQUEST, "the request is not JSON.") from error
        if not isinstance(body, dict):
            raise Refused(HTTPStatus.BAD_REQUEST, "the request is not a JSON object.")
        return body

    def _events(self, run: int | None, seen: Position) -> Iterator[bytes]:
        """Each new period of a run, and the list of runs when it changes."""
        return events(self.shared.store, self.shared.stopping, run, seen)

    def _stream(self, sent: Iterator[bytes]) -> None:
        """Server-sent events, as they come."""
        if not self.shared.streams.acquire(blocking=False):
            raise Refused(HTTPStatus.SERVICE_UNAVAILABLE, "too many pages are open already.")
        try:
            self._headers(HTTPStatus.OK, "text/event-stream; charset=utf-8")
            self.close_connection = True
            if self.command != "HEAD":
                for event in sent:
                    self.wfile.write(event)
                    self.wfile.flush()
        finally:
            self.shared.streams.release()

    def _send_asset(self, name: str) -> None:
        content = self.shared.assets.get(name)
        if content is None:
            raise Refused(HTTPStatus.NOT_FOUND, "there is nothing at this address.")
        self._send(content, KINDS[name.rpartition(".")[2]])

    def _send_json(self, value: Any, status: HTTPStatus = HTTPStatus.OK) -> None:
        self._send(json.dumps(value, allow_nan=False).encode(), JSON, status)

    def _send(
        self, content: bytes, kind: str, status: HTTPStatus = HTTPStatus.OK,
        also: Mapping[str, str] | None = None,
    ) -> None:  # fmt: skip
        self._headers(status, kind, len(content), also)
        if self.command != "HEAD":
            self.wfile.write(content)

    def _headers(
        self, status: HTTPStatus, kind: str, length: int | None = None,
        also: Mapping[str, str] | None = None,
    ) -> None:  # fmt: skip
        self._answered = True
        self.send_response(status)
        for name, value in {"Content-Type": kind, **HEADERS, **(also or {})}.items():
            self.send_header(name, value)
        if self.close_connection or length is None:
            self.send_header("Connection", "close")
        if length is not None:
            self.send_header("Content-Length", str(length))
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:
        """To our log; the terminal belongs to the run."""
        log.debug(format, *args)


def _address(raw: str) -> tuple[str, dict[str, str]]:
    """The path and the query of a request; of a name that comes twice, the last."""
    try:
        parts = urlsplit(raw)
        query = parse_qs(parts.query, max_num_fields=16)
    except ValueError as error:
        raise Refused(HTTPStatus.BAD_REQUEST, "the address cannot be read.") from error
    return parts.path, {name: values[-1] for name, values in query.items()}


def _moment(query: Mapping[str, str], name: str) -> float | None:
    text = query.get(name)
    if text is None:
        return None
    try:
        value = float(text)
    except ValueError:
        value = float("nan")
    if not -1e15 < value < 1e15:
        raise InvalidInput(f"{name} is {text[:40]!r}; give a Unix time in seconds.")
    return value
