"""Server-sent events: each new period of a run, and the list of runs when it changes.

The server looks into the history, so that a run in another process is as live as one in its own.
"""

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from penstock.control.history.store import HistoryStore
from penstock.control.history.tail import Position, position
from penstock.dashboard.view import run_list, update_document
from penstock.documents import plain
from penstock.errors import Unavailable

LOOK_EVERY_S = 0.5  # how soon a period that another program wrote is on the page
KEEP_ALIVE_S = 15.0  # a comment so often shows which readers are gone


def events(
    store: HistoryStore, stopping: threading.Event, run: int | None, seen: Position
) -> Iterator[bytes]:
    """What is to be sent, as it comes, until the server stops; without a run, the list alone.

    The list comes first: a run may have begun or ended since the page asked for it.
    """
    known, quiet_s = list[dict[str, Any]](), 0.0
    while not stopping.is_set():
        sent = False
        try:
            for kind, value, at in _news(store, run, seen, known):
                yield _event(kind, value, at)
                seen, sent = at, True
                known = value["runs"] if kind == "runs" else known
        except Unavailable as error:  # a database that is away comes back
            yield _event("trouble", {"error": str(error)}, seen)
            sent = True
        quiet_s = 0.0 if sent else quiet_s + LOOK_EVERY_S
        if quiet_s >= KEEP_ALIVE_S:
            yield b":\n\n"
            quiet_s = 0.0
        stopping.wait(LOOK_EVERY_S)


def hosted_events(
    hosted: Callable[[], Mapping[str, Any]], stopping: threading.Event
) -> Iterator[bytes]:
    """What a host runs, whenever that has changed."""
    known, quiet_s = None, 0.0
    while not stopping.is_set():
        now = plain(hosted())
        quiet_s = 0.0 if now != known else quiet_s + LOOK_EVERY_S
        if now != known:
            known = now
            yield f"event: topologies\ndata: {json.dumps(now, allow_nan=False)}\n\n".encode()
        elif quiet_s >= KEEP_ALIVE_S:
            yield b":\n\n"
            quiet_s = 0.0
        stopping.wait(LOOK_EVERY_S)


def _news(
    store: HistoryStore, run: int | None, seen: Position, known: list[dict[str, Any]]
) -> Iterator[tuple[str, dict[str, Any], Position]]:
    runs = run_list(store)
    if runs != known:
        yield "runs", {"runs": runs}, seen
    if run is not None and (now := position(store, run)) != seen:
        yield "period", update_document(store, run, seen, now), now


def _event(kind: str, value: Any, at: Position) -> bytes:
    data = json.dumps(value, allow_nan=False)  # one line: JSON escapes line breaks
    return f"event: {kind}\nid: {at}\ndata: {data}\n\n".encode()
