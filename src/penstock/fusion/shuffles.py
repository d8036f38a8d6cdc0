"""Which shuffles of a topology fusing can save on Spark.

Rows are shuffled where they come to an operator that groups them. Operators without a key run where
their rows come from, so what an operator with a key receives through them is a stream from the
operators with keys before them; only such a stream can be kept inside a component. The shuffle into
the first operator with a key always remains. Operators that read the same rows share it when they
are fused, if those rows can be divided once for all of them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from graphlib import TopologicalSorter

Key = tuple[str, ...] | None  # empty: any division will do; None: what leaves it is divided anew


@dataclass(frozen=True)
class Shuffled:
    """A share of the rows of an edge into an operator with a key.

    `kept_with` is the operator that would save the shuffle if both were fused; None if none would.
    """

    edge: tuple[str, str]
    kept_with: str | None
    share: float


def shuffled_streams(
    keys: Mapping[str, Key],
    rows: Mapping[tuple[str, str], float],
    divided_once: frozenset[str],
) -> tuple[Shuffled, ...]:
    """What is shuffled when every operator is by itself; `rows` are those of each edge.

    `divided_once` are nodes whose rows one shuffle can bring to all operators of a component.
    Where operators with and without a key before them are mixed (a union), rows are taken to mix in
    proportion.

    >>> keys = {"clean": (), "speeds": ("segment",), "tolls": ("segment",)}
    >>> rows = {("rows", "clean"): 9.0, ("clean", "speeds"): 8.0, ("speeds", "tolls"): 2.0}
    >>> [(one.edge[1], one.kept_with) for one in shuffled_streams(keys, rows, frozenset())]
    [('speeds', None), ('tolls', 'speeds')]
    """
    upstreams = {name: [u for u, d in rows if d == name] for name in keys}
    known = {name: [u for u in above if u in keys] for name, above in upstreams.items()}
    order = list(TopologicalSorter(known).static_order())
    origins: dict[str, dict[str, float]] = {}
    for name in order:
        origins[name] = {name: 1.0} if keys[name] else _mixed(name, keys, upstreams, origins, rows)
    found: list[Shuffled] = []
    readers: dict[str, list[str]] = {}
    for name in (one for one in order if keys[one]):
        for upstream in upstreams[name]:
            from_keyed = origins.get(upstream, {})
            found += [
                Shuffled((upstream, name), origin, share) for origin, share in from_keyed.items()
            ]
            rest = 1.0 - sum(from_keyed.values())
            if rest > 1e-9:
                beside = None
                if upstream in divided_once and not from_keyed:
                    beside = _sharing_a_key(name, readers.setdefault(upstream, []), keys)
                    readers[upstream].append(name)
                found.append(Shuffled((upstream, name), beside, rest))
    return tuple(found)


def _mixed(
    name: str,
    keys: Mapping[str, Key],
    upstreams: Mapping[str, Sequence[str]],
    origins: Mapping[str, Mapping[str, float]],
    rows: Mapping[tuple[str, str], float],
) -> dict[str, float]:
    """The shares of an operator's rows that stay divided as operators with keys left them."""
    if keys[name] is None:
        return {}
    total = sum(rows[upstream, name] for upstream in upstreams[name])
    made: dict[str, float] = {}
    for upstream in upstreams[name] if total > 0 else ():
        for origin, share in origins.get(upstream, {}).items():
            made[origin] = made.get(origin, 0.0) + share * rows[upstream, name] / total
    return made


def _sharing_a_key(name: str, readers: Sequence[str], keys: Mapping[str, Key]) -> str | None:
    return next((one for one in readers if set(keys[one] or ()) & set(keys[name] or ())), None)


def with_stateless(
    members: Sequence[str], keys: Mapping[str, Key], edges: Sequence[tuple[str, str]]
) -> tuple[str, ...]:
    """The members of a component and the operators without a key on the way between them.

    >>> edges = [("a", "b"), ("b", "c"), ("c", "d")]
    >>> with_stateless(["a", "c"], {"a": ("k",), "b": (), "c": ("k",), "d": ()}, edges)
    ('a', 'b', 'c')
    """
    inside = set(members)
    above: dict[str, set[str]] = {name: set() for name in keys}
    below: dict[str, set[str]] = {name: set() for name in keys}
    for upstream, name in edges:
        if upstream in keys:
            above[name].add(upstream)
            below[upstream].add(name)
    between = _reached(inside, below, keys) & _reached(inside, above, keys)
    return tuple(name for name in keys if name in inside or name in between)


def _reached(start: set[str], ways: Mapping[str, set[str]], keys: Mapping[str, Key]) -> set[str]:
    """Operators without a key that are reached from the start through nothing else."""
    found: set[str] = set()
    waiting = list(start)
    while waiting:
        for name in ways[waiting.pop()]:
            if keys[name] == () and name not in found:
                found.add(name)
                waiting.append(name)
    return found
