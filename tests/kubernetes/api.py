"""The few requests to a Kubernetes API server that these tests make."""

import json
import ssl
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from http.client import HTTPResponse, HTTPSConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

MERGE = "application/merge-patch+json"
LIMIT_S = 60.0
Document = dict[str, Any]


class Refused(Exception):
    """What the API server answered instead of doing it."""

    def __init__(self, status: int, answer: str) -> None:
        super().__init__(f"{status}: {answer}")
        self.status = status


@dataclass(frozen=True)
class Api:
    """A user of an API server on loopback."""

    port: int
    authority: Path
    token: str

    def get(self, path: str, **query: str) -> Document:
        return self.ask("GET", path, query=query)

    def post(self, path: str, body: Document, **query: str) -> Document:
        return self.ask("POST", path, body, query=query)

    def patch(self, path: str, body: Document) -> Document:
        return self.ask("PATCH", path, body, MERGE)

    def delete(self, path: str, body: Document | None = None) -> Document:
        return self.ask("DELETE", path, body)

    def ask(
        self,
        method: str,
        path: str,
        body: Document | str | None = None,
        kind: str = "application/json",
        query: Mapping[str, str] | None = None,
    ) -> Document:
        with closing(self._connect(LIMIT_S)) as connection:
            answer = self._send(connection, method, path, body, kind, query or {})
            text = answer.read().decode("utf-8")
        found: Document = json.loads(text) if text.startswith("{") else {"text": text}
        return found

    def watch(self, path: str, since: str, limit_s: float) -> Iterator[Document]:
        """What happens there from a version on; ends by itself after the limit."""
        query = {"watch": "1", "resourceVersion": since, "timeoutSeconds": f"{limit_s:.0f}"}
        with closing(self._connect(limit_s + LIMIT_S)) as connection:
            answer = self._send(connection, "GET", path, None, "", query)
            for line in answer:
                yield json.loads(line)

    def _connect(self, limit_s: float) -> HTTPSConnection:
        trusted = ssl.create_default_context(cafile=str(self.authority))
        return HTTPSConnection("127.0.0.1", self.port, timeout=limit_s, context=trusted)

    def _send(
        self,
        connection: HTTPSConnection,
        method: str,
        path: str,
        body: Document | str | None,
        kind: str,
        query: Mapping[str, str],
    ) -> HTTPResponse:
        headers = {"Authorization": f"Bearer {self.token}", "Accept": "application/json"}
        sent = None if body is None else body if isinstance(body, str) else json.dumps(body)
        if sent is not None:
            headers["Content-Type"] = kind
        target = f"{path}?{urlencode(query)}" if query else path
        connection.request(method, target, sent, headers)
        answer = connection.getresponse()
        if answer.status >= 400:
            raise Refused(answer.status, answer.read().decode("utf-8", "replace"))
        return answer
