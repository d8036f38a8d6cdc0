"""Offsets of Penstock's own sources: JSON objects that name the source they are of."""

import json
from typing import Any

Offset = dict[str, Any]

NAMES = ("stream", "source", "channel")  # as a generator, many streams and a channel call it


def source_of(offset: object) -> str | None:
    """The name of the source an offset is of; None if it is none of ours.

    >>> source_of({"row": 7, "stream": "reports"})
    'reports'
    """
    if not isinstance(offset, dict):
        return None
    return next((str(offset[name]) for name in NAMES if name in offset), None)


def by_source(offsets: list[str | None]) -> dict[str, list[Offset]]:
    """Offsets of a query, as its progress reports them; one that is read twice has two."""
    found: dict[str, list[Offset]] = {}
    for text in offsets:
        offset = json.loads(text) if text else None
        name = source_of(offset)
        if name is not None and offset is not None:
            found.setdefault(name, []).append(offset)
    return found
