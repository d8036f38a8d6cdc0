"""What a lane needs to write the route column of a batch: frozen, and as JSON for the journey."""

import json
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

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
_BLOCK_ROWS = 16_384  # intermediate columns stay in the cache; larger ones cost page faults
_LEAST_TURN_BITS, _MOST_TURN_BITS = 10, 22
_MOST_AT_TURN = 1 << 20


@dataclass(frozen=True)
class HotKey:
    """A key that is split: the node of each of its parts."""

    label: str
    hash: int
    nodes: tuple[int, ...]


@dataclass(frozen=True)
class RouteTable:
    """Routes of a batch: hot keys go to their parts in turn, all others where the ring says.

    Turns follow the row's number n, which begins anew every 16384 rows: part floor(p frac(n phi)),
    phi the golden ratio. The rows of a key are spread evenly at any regular distance from each
    other, and nothing is counted. The node of each entry at each turn stands in a table.
    Differs from Balkesen et al. 2013, s. 4.1: turns go by the row's number in the batch, not the
    key's own.
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
        if not self.hot:
            return self.ring.routes(hashes)
        routes = np.empty(len(hashes), dtype=np.int64)
        first = first_row % _BLOCK_ROWS
        for start in range(0, len(hashes), _BLOCK_ROWS):
            block = hashes[start : start + _BLOCK_ROWS]
            entries = self._entries_of(block)
            turns = self._turns[first : first + len(block)]
            routes[start : start + _BLOCK_ROWS] = self._at(entries, turns)
        return routes

    def _at(self, entries: Ints, turns: Ints) -> NDArray[np.int32]:
        """The node of each entry at a turn of its own."""
        if self._is_large:
            places = (turns * self._parts.take(entries)) >> self._turn_bits
            return self._flat.take(self._starts.take(entries) + places)
        entries <<= self._turn_bits
        entries += turns
        return self._at_turn.take(entries)

    def _entries_of(self, hashes: Hashes) -> Ints:
        """For each row the number of its hot key, or else of its node (after the hot keys)."""
        places = slots(hashes)
        entries = self._entries.take(places)
        other = self._hashes.take(entries) != hashes
        other &= entries < len(self.hot)
        # A cold key at the place of a hot one, or the second hot key at a place: few rows.
        rows = np.flatnonzero(other)
        while len(rows):
            entries[rows] = self._next.take(entries.take(rows))
            at = entries.take(rows)
            rows = rows[(at < len(self.hot)) & (self._hashes.take(at) != hashes.take(rows))]
        return entries

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

    @cached_property
    def _hashes(self) -> Hashes:
        """Of the hot keys; nodes need none."""
        hashes = [key.hash for key in self.hot]
        return np.array(hashes + [0] * len(self.ring.nodes), dtype=np.uint64)

    @cached_property
    def _turn_bits(self) -> int:
        """Turns enough for the key with most parts, as a power of two."""
        most = max(len(key.nodes) for key in self.hot)
        return min(_MOST_TURN_BITS, max(_LEAST_TURN_BITS, (4 * most - 1).bit_length()))

    @property
    def _is_large(self) -> bool:
        """Whether nodes at all turns would take more memory than they save time."""
        return (len(self.hot) + len(self.ring.nodes)) << self._turn_bits > _MOST_AT_TURN

    @cached_property
    def _turns(self) -> Ints:
        """The turn of each row of two blocks, so that a slice begins at any row of the first."""
        numbers = np.arange(_BLOCK_ROWS, dtype=np.uint64) * _STEP
        return np.tile((numbers >> np.uint64(64 - self._turn_bits)).view(np.int64), 2)

    @cached_property
    def _at_turn(self) -> NDArray[np.int32]:
        """The node of each hot key at each turn, then of each node: itself."""
        turns = np.arange(1 << self._turn_bits)
        places = turns * self._parts[:, None] >> self._turn_bits
        return self._flat.take(self._starts[:, None] + places).ravel()

    @cached_property
    def _parts(self) -> Ints:
        """Of the hot keys, then one of each node."""
        parts = [len(key.nodes) for key in self.hot]
        return np.array(parts + [1] * len(self.ring.nodes), dtype=np.int64)

    @cached_property
    def _starts(self) -> Ints:
        """Where the parts of an entry begin in `_flat`."""
        return np.cumsum(self._parts) - self._parts

    @cached_property
    def _flat(self) -> NDArray[np.int32]:
        """Nodes of all parts of all hot keys, then each node by itself."""
        nodes = [node for key in self.hot for node in key.nodes]
        return np.array([*nodes, *self.ring.nodes], dtype=np.int32)

    @cached_property
    def _entries(self) -> Ints:
        """For each place of the ring its first hot key, or else its node."""
        return self._chains[0]

    @cached_property
    def _next(self) -> Ints:
        """The entry to look at when the hash of a hot key is not the row's."""
        return self._chains[1]

    @cached_property
    def _chains(self) -> tuple[Ints, Ints]:
        entries = len(self.hot) + self.ring.places(self.ring.owners)
        following = np.zeros(len(self.hot), dtype=np.int64)
        for number, place in enumerate(slots(self._hashes[: len(self.hot)]).tolist()):
            following[number], entries[place] = entries[place], number
        return entries, following


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
