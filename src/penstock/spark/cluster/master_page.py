"""What the web page of a standalone master says of its workers, where it can be read.

A master does not tell its applications where its page is; it is looked for where Spark puts it.
"""

import contextlib
import json
import os
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

PAGE_PORTS = (8080, 8081)  # the second when another program had the first
ANSWER_LIMIT_S = 2.0
ALIVE = "ALIVE"


@dataclass(frozen=True)
class Worker:
    """One worker that is registered with a master and alive."""

    slots: int
    free_slots: int
    memory_mb: int


def workers_of(master: str) -> tuple[Worker, ...] | None:
    """The workers of a master by its URL; None where no page tells."""
    for address in master.removeprefix("spark://").split(","):
        host, _, port = address.rpartition(":")
        for page in _pages(host):
            # Another master's page may be there; one that stands by knows no workers.
            if str(page.get("url", "")).rpartition(":")[2] == port and page.get("workers"):
                return tuple(_alive(page["workers"]))
    return None


def _pages(host: str) -> Iterator[dict[str, Any]]:
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    given = os.environ.get("SPARK_MASTER_WEBUI_PORT", "")
    for port in (int(given),) if given.isdigit() else PAGE_PORTS:
        with (
            contextlib.suppress(OSError, ValueError),
            opener.open(f"http://{host}:{port}/json/", timeout=ANSWER_LIMIT_S) as page,
        ):
            found = json.load(page)
            if isinstance(found, dict):
                yield found


def _alive(listed: list[dict[str, Any]]) -> Iterator[Worker]:
    for one in listed:
        if one.get("state") == ALIVE:
            with contextlib.suppress(KeyError, TypeError, ValueError):
                yield Worker(int(one["cores"]), int(one["coresfree"]), int(one["memory"]))
