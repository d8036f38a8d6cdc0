"""`penstock advise routing`: the load of nodes under a way of routing, from a JSON document."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from penstock.documents import Document, Schema
from penstock.errors import InvalidInput
from penstock.model.observation import Floats, Ints
from penstock.routing.baselines import candidates, plain_hash_routes, two_choices_counts
from penstock.routing.frequent_keys import KeyCounts
from penstock.routing.hashing import Hashes, key_hashes
from penstock.routing.osg import class_counts
from penstock.routing.panes import cut_pane, new_history
from penstock.routing.ring import MOST_NODES, ring_of
from penstock.routing.splitting import SplitRule, split_keys

DEFAULT_TOP_K = 100
_MOST_ROWS = 10**12
_MOST_PANES = 100_000
_MOST_DEALT = 10_000_000  # keys x nodes, for osg

_COUNT: Schema = {"type": "integer", "minimum": 0, "maximum": _MOST_ROWS}
_KEY: Schema = {
    "type": "object",
    "required": ["key", "count"],
    "additionalProperties": False,
    "properties": {
        "key": {"type": ["string", "integer"], "description": "the key; name each only once"},
        "count": {**_COUNT, "description": "rows of this key"},
        "cost": {
            "type": "number",
            "exclusiveMinimum": 0,
            "maximum": 1e9,
            "description": "load of one row of this key; 1 if not given",
        },
    },
}
_BY_KEY: tuple[str, ...] = ("frequency-aware", "hash", "consistent", "osg", "two-choices")
_BY_PANE: tuple[str, ...] = ("panes", "rate-aware-panes")
SCHEMA: Schema = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "title": "routing",
    "description": "How evenly rows are spread over nodes (Balkesen et al. 2013, s. 4; OSG of "
    "Kotto-Kombi 2018, ch. 6).",
    "type": "object",
    "required": ["method", "nodes"],
    "additionalProperties": False,
    "properties": {
        "method": {
            "enum": [*_BY_KEY, *_BY_PANE],
            "description": "panes and rate-aware-panes take 'panes', the others take 'keys'",
        },
        "nodes": {"type": "integer", "minimum": 1, "maximum": MOST_NODES},
        "top_k": {
            "type": "integer",
            "minimum": 0,
            "maximum": 1_000_000,
            "description": f"most frequent keys to split; {DEFAULT_TOP_K} if not given. Only "
            "frequency-aware splits keys; the others take it, so that methods can be compared",
        },
        "keys": {"type": "array", "items": _KEY},
        "panes": {
            "type": "array",
            "items": _COUNT,
            "maxItems": _MOST_PANES,
            "description": "rows of each pane, in order",
        },
    },
}


def load_ratio(load: ArrayLike) -> float:
    """Standard deviation over mean of the nodes' loads; 0 without any load.

    Balkesen et al. 2013, s. 6.4.1.

    >>> load_ratio([10, 10, 10])
    0.0
    """
    loads = np.asarray(load, dtype=np.float64)
    mean = float(loads.mean()) if loads.size else 0.0
    return float(loads.std() / mean) if mean > 0 else 0.0


def node_loads(routes: Ints, nodes: int, costs: Floats | Ints | None = None) -> Floats:
    """Rows, or their costs, that each node got."""
    return np.bincount(routes, weights=costs, minlength=nodes).astype(np.float64)


@dataclass(frozen=True)
class _Keys:
    names: tuple[str, ...]
    hashes: Hashes
    counts: Ints
    costs: Floats


@dataclass(frozen=True)
class _Spread:
    load: Floats
    splits: dict[str, int]


def advise(document: Document) -> dict[str, Any]:
    """The load of each node, its ratio std/mean, and what was split into how many parts.

    Splits are the K keys with their parts (frequency-aware), the keys or panes on more than one
    node with the number of nodes (osg, two-choices, rate-aware-panes), and none otherwise.
    """
    method, nodes = str(document["method"]), int(document["nodes"])
    field, other = ("keys", "panes") if method in _BY_KEY else ("panes", "keys")
    if field not in document or other in document:
        raise InvalidInput(f"method {method!r} takes {field!r} and not {other!r}; give {field!r}.")
    if "top_k" in document and method in _BY_PANE:
        raise InvalidInput(f"top_k is a number of keys, and method {method!r} has none; leave it.")
    if method in _BY_PANE:
        spread = _PANES[method](document["panes"], nodes)
    elif method == "frequency-aware":
        top_k = int(document.get("top_k", DEFAULT_TOP_K))
        spread = _by_frequency(_read_keys(document["keys"]), nodes, top_k)
    else:
        spread = _KEYED[method](_read_keys(document["keys"]), nodes)
    return {
        "load": [round(float(load), 9) for load in spread.load],
        "load_ratio": load_ratio(spread.load),
        "splits": spread.splits,
    }


def _by_frequency(keys: _Keys, nodes: int, top_k: int) -> _Spread:
    order = np.argsort(-keys.counts, kind="stable")
    names = tuple(keys.names[place] for place in order)
    total = float(keys.counts.sum())
    ranked = KeyCounts(names, keys.hashes[order], keys.counts[order].astype(np.float64), total)
    ring = ring_of(nodes)
    rest = order[top_k:]
    owners = ring.routes(keys.hashes)
    splits = split_keys(
        ranked, ring, SplitRule(top_k=top_k), node_loads(owners[rest], nodes, keys.counts[rest])
    )
    top = order[:top_k]
    first = np.cumsum(splits.parts) - splits.parts
    number = np.arange(len(splits.part_nodes)) - np.repeat(first, splits.parts)
    # In turn: the first (count mod parts) parts get one row more.
    rows = np.repeat(keys.counts[top] // splits.parts, splits.parts)
    rows += number < np.repeat(keys.counts[top] % splits.parts, splits.parts)
    costs = rows * np.repeat(keys.costs[top], splits.parts)
    load = node_loads(splits.part_nodes, nodes, costs)
    load += node_loads(owners[rest], nodes, (keys.counts * keys.costs)[rest])
    return _Spread(load, dict(zip(splits.keys.labels, splits.parts.tolist(), strict=True)))


def _by_hash(keys: _Keys, nodes: int) -> _Spread:
    return _whole_keys(keys, plain_hash_routes(keys.hashes, nodes), nodes)


def _by_ring(keys: _Keys, nodes: int) -> _Spread:
    return _whole_keys(keys, ring_of(nodes).routes(keys.hashes), nodes)


def _whole_keys(keys: _Keys, routes: Ints, nodes: int) -> _Spread:
    return _Spread(node_loads(routes, nodes, keys.counts * keys.costs), {})


def _by_osg(keys: _Keys, nodes: int) -> _Spread:
    if len(keys.names) * nodes > _MOST_DEALT:
        raise InvalidInput(
            f"keys has {len(keys.names)} entries for {nodes} nodes; for method 'osg' their product "
            f"may be at most {_MOST_DEALT}."
        )
    dealt, load = class_counts(keys.counts, keys.costs, np.zeros(nodes))
    return _Spread(load, _reached(keys.names, np.count_nonzero(dealt, axis=1)))


def _by_two_choices(keys: _Keys, nodes: int) -> _Spread:
    first, second = candidates(keys.hashes, nodes)
    mine, _ = two_choices_counts(keys.counts, first, second, np.zeros(nodes))
    rest = keys.counts - mine
    load = node_loads(first, nodes, mine * keys.costs)
    load += node_loads(second, nodes, rest * keys.costs)
    both = np.where((mine > 0) & (rest > 0) & (first != second), 2, 1)
    return _Spread(load, _reached(keys.names, both))


def _plain_panes(sizes: Sequence[float], nodes: int) -> _Spread:
    turns = np.arange(len(sizes)) % nodes
    return _Spread(node_loads(turns, nodes, _whole_numbers(sizes)), {})


def _rate_aware_panes(sizes: Sequence[float], nodes: int) -> _Spread:
    history, load, pieces = new_history(nodes), np.zeros(nodes), []
    for pane, size in enumerate(_whole_numbers(sizes).tolist()):
        cut, history = cut_pane(pane, size, history)
        np.add.at(load, cut.nodes, cut.rows)
        pieces.append(len(cut.nodes))
    names = tuple(str(pane) for pane in range(len(sizes)))
    return _Spread(load, _reached(names, np.array(pieces, dtype=np.int64)))


_KEYED: Mapping[str, Callable[[_Keys, int], _Spread]] = {
    "hash": _by_hash,
    "consistent": _by_ring,
    "osg": _by_osg,
    "two-choices": _by_two_choices,
}
_PANES: Mapping[str, Callable[[Sequence[float], int], _Spread]] = {
    "panes": _plain_panes,
    "rate-aware-panes": _rate_aware_panes,
}


def _reached(names: tuple[str, ...], nodes: Ints) -> dict[str, int]:
    return {name: number for name, number in zip(names, nodes.tolist(), strict=True) if number > 1}


def _whole_numbers(values: Sequence[float]) -> Ints:
    # JSON Schema takes 3.0 for an integer.
    return np.array([int(value) for value in values], dtype=np.int64)


def _read_keys(given: Sequence[Mapping[str, Any]]) -> _Keys:
    names: list[str] = []
    hashes = np.zeros(len(given), dtype=np.uint64)
    texts = [place for place, key in enumerate(given) if isinstance(key["key"], str)]
    numbers = [place for place, key in enumerate(given) if not isinstance(key["key"], str)]
    seen: set[str] = set()
    for place, key in enumerate(given):
        name = _name(f"keys[{place}].key", key["key"])
        if name in seen:
            raise InvalidInput(f"keys[{place}].key is {name!r}, which appears twice; give it once.")
        seen.add(name)
        names.append(name)
    hashes[texts] = key_hashes(np.array([names[place] for place in texts], dtype=object))
    hashes[numbers] = key_hashes(_whole_numbers([given[place]["key"] for place in numbers]))
    counts = _whole_numbers([key["count"] for key in given])
    costs = np.array([float(key.get("cost", 1)) for key in given], dtype=np.float64)
    return _Keys(tuple(names), hashes, counts, costs)


def _name(field: str, key: str | float) -> str:
    if not isinstance(key, str):
        if not -(2**63) <= key < 2**63:
            raise InvalidInput(f"{field} is {str(key)[:30]}; give an integer of at most 64 bits.")
        return str(int(key))
    try:
        key.encode("utf-8")
    except UnicodeEncodeError as error:
        raise InvalidInput(
            f"{field} is not valid text; use characters that UTF-8 can encode."
        ) from error
    return key
