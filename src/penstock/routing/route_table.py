"""What a lane needs to write the route column of a batch: frozen, and as JSON for the journey."""

import json
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from penstock.documents import Schema, check_document, parse_document
from penstock.errors import InvalidInput
from penstock.model.observation import Ints
from penstock.routing.hashing import Column, Hashes, key_hashes
from penstock.routing.ring import MOST_NODES, Ring, ring_of, slots
from penstock.routing.splitting import Splits

_NODE: Schema = {"type": "integer", "minimum": 0, "maximum": 2**31 - 1}
_HOT_KEY: Schema = {
    "type": "object",
    "required": ["key", "hash", "nodes"],
    "additionalProperties": False,
    "properties": {
        "key": {"type": "string", "description": "the key as people read it"},
        "hash": {"type": "string", "pattern": "^[0-9a-f]{16}$"},
        "nodes": {"type": "array", "items": _NODE, "minItems": 2, "description": "of each part"},
    },
}
SCHEMA: Schema = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "title": "route table",
    "type": "object",
    "required": ["nodes", "virtual_nodes", "hot"],
    "additionalProperties": False,
    "properties": {
        "nodes": {"type": "array", "items": _NODE, "minItems": 1, "maxItems": MOST_NODES},
        "virtual_nodes": {"type": "integer", "minimum": 1, "maximum": 65_536},
        "hot": {"type": "array", "items": _HOT_KEY},
    },
}
_STEP = np.uint64(0x9E3779B97F4A7C15)  # 2**64 divided by the golden ratio
_HALF = np.uint64(32)


@dataclass(frozen=True)
class HotKey:
    """A key that is split: the node of each of its parts."""

    label: str
    hash: int
    nodes: tuple[int, ...]


@dataclass(frozen=True)
class RouteTable:
    """Routes of a batch: hot keys go to their parts in turn, all others where the ring says.

    Turns follow the row's number n: part floor(p frac(n phi)), phi the golden ratio. The rows of
    a key are spread evenly at any regular distance from each other, and nothing is counted.
    Differs from seed 000 s.4.1: turns go by the row's number in the batch, not the key's own.
    """

    ring: Ring
    hot: tuple[HotKey, ...] = ()

    def __post_init__(self) -> None:
        if len({key.hash for key in self.hot}) < len(self.hot):
            raise InvalidInput("a route table names a hot key twice; give each once.")
        known = set(self.ring.nodes)
        for key in self.hot:
            if not key.nodes or not known.issuperset(key.nodes):
                raise InvalidInput(
                    f"hot key {key.label!r} has a part on no node of the ring; give nodes of it."
                )

    def routes(self, *columns: Column, first_row: int = 0) -> Ints:
        """The node of each row, by its key columns; `first_row` is the number of the first row.

        >>> RouteTable(ring_of(4)).routes(["a", "e", "a"]).tolist()
        [0, 2, 0]
        """
        return self.routes_of(key_hashes(*columns), first_row)

    def routes_of(self, hashes: Hashes, first_row: int = 0) -> Ints:
        """The node of each row, by the hash of its key."""
        places = slots(hashes)
        if not self.hot:
            return self.ring.owners.take(places)
        routes = self._marked.take(places)
        rows = np.flatnonzero(routes < 0)
        if len(rows) == 0:
            return routes
        marks, found = -1 - routes.take(rows), hashes.take(rows)
        routes[rows] = self.ring.owners.take(places.take(rows))
        while len(rows):
            same = self._hashes.take(marks) == found
            hit = rows if same.all() else rows[same]
            routes[hit] = self._part_nodes(marks if same.all() else marks[same], hit, first_row)
            marks = self._next.take(marks)
            # Two hot keys may stand at one place of the ring: those left look at the next one.
            more = ~same & (marks >= 0)
            rows, marks, found = rows[more], marks[more], found[more]
        return routes

    def to_json(self) -> str:
        """The table as JSON text."""
        document: dict[str, Any] = {
            "nodes": list(self.ring.nodes),
            "virtual_nodes": self.ring.virtual_nodes,
            "hot": [
                {"key": key.label, "hash": f"{key.hash:016x}", "nodes": list(key.nodes)}
                for key in self.hot
            ],
        }
        return json.dumps(document)

    @classmethod
    def from_json(cls, text: str) -> "RouteTable":
        """The table that `to_json` wrote."""
        document = parse_document(text.encode("utf-8", "replace"), "the route table")
        check_document(document, SCHEMA)
        hot = (
            HotKey(key["key"], int(key["hash"], 16), tuple(int(node) for node in key["nodes"]))
            for key in document["hot"]
        )
        nodes = [int(node) for node in document["nodes"]]
        return cls(ring_of(nodes, int(document["virtual_nodes"])), tuple(hot))

    def _part_nodes(self, keys: Ints, rows: Ints, first_row: int) -> Ints:
        turns = (rows + first_row).view(np.uint64)
        turns *= _STEP
        turns >>= _HALF
        turns *= self._parts.take(keys).view(np.uint64)
        turns >>= _HALF
        return self._flat.take(self._starts.take(keys) + turns.view(np.int64))

    @cached_property
    def _hashes(self) -> Hashes:
        return np.array([key.hash for key in self.hot], dtype=np.uint64)

    @cached_property
    def _parts(self) -> Ints:
        return np.array([len(key.nodes) for key in self.hot], dtype=np.int64)

    @cached_property
    def _starts(self) -> Ints:
        return np.cumsum(self._parts) - self._parts

    @cached_property
    def _flat(self) -> Ints:
        return np.array([node for key in self.hot for node in key.nodes], dtype=np.int64)

    @cached_property
    def _marked(self) -> Ints:
        """The ring's table with -1 - i at the place of hot key i."""
        return self._chains[0]

    @cached_property
    def _next(self) -> Ints:
        """The next hot key at the same place; -1 at the end."""
        return self._chains[1]

    @cached_property
    def _chains(self) -> tuple[Ints, Ints]:
        marked, following = self.ring.owners.copy(), np.full(len(self.hot), -1)
        for number, place in enumerate(slots(self._hashes).tolist()):
            if marked[place] < 0:
                following[number] = -1 - marked[place]
            marked[place] = -1 - number
        return marked, following


def table_of(ring: Ring, splits: Splits) -> RouteTable:
    """The table in which the keys with more than one part are hot."""
    ends = np.cumsum(splits.parts)
    hot = tuple(
        HotKey(label, int(key), tuple(splits.part_nodes[end - parts : end].tolist()))
        for label, key, parts, end in zip(
            splits.keys.labels, splits.keys.hashes, splits.parts, ends, strict=True
        )
        if parts > 1
    )
    return RouteTable(ring, hot)
