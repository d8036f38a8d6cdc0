"""The operator graph with its statistics windows: what may be fused.

Guo and Zhou 2017, s. 2.2 and s. 3.1.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import networkx as nx
import numpy as np

from penstock.errors import InvalidInput
from penstock.fusion.members import Members, members_of, positions_of
from penstock.model.observation import Floats, Ints

_COMPONENTS_AT_ONCE = 1_000
ANY_KEY = -1  # every bit set: an operator without a key fits whatever the others share


@dataclass(frozen=True)
class OperatorStatistics:
    """An operator and the rows of its state per window and key group.

    An empty key says that any partitioning will do (a map, a filter); `state_rows` is None for an
    operator that keeps none. `measured_by` is the key that the key groups of its histograms are of,
    where that is known. An `exact` operator is divided by all of its key or not at all, as Spark
    divides joins of streams; others also by part of it.
    """

    name: str
    key: tuple[str, ...]
    state_rows: Floats | None = None  # windows x key groups
    measured_by: tuple[str, ...] | None = None
    exact: bool = False


@dataclass(frozen=True)
class StreamStatistics:
    """Rows of one stream per window and key group; `upstream` is None when a source feeds it."""

    upstream: str | None
    downstream: str
    load_rows: Floats | float  # windows x key groups, or a total that is spread evenly over both

    @property
    def total_rows(self) -> float:
        """Rows over all windows and key groups."""
        return float(np.sum(self.load_rows))


@dataclass(frozen=True, eq=False)
class OperatorGraph:
    """Operators by position, and their streams as columns; built by `operator_graph`."""

    names: tuple[str, ...]
    keys: tuple[tuple[str, ...], ...]
    upstream: Ints  # of each stream between operators
    downstream: Ints
    stream_rows: Floats  # of each stream, over all windows
    input_rows: Floats  # operators x windows x key groups, all streams into an operator
    state_rows: Floats  # operators x windows x key groups
    measured_by: tuple[tuple[str, ...] | None, ...] = ()  # of each operator; empty: of none
    exact: tuple[bool, ...] = ()  # of each operator; empty: of none

    @property
    def size(self) -> int:
        """The number of operators."""
        return len(self.names)

    @property
    def total_rows(self) -> float:
        """The overall load l: rows of all streams between operators over all windows."""
        return float(self.stream_rows.sum())

    @cached_property
    def links(self) -> tuple[dict[int, float], ...]:
        """For each operator its neighbours, either direction, with the rows between the two."""
        links: tuple[dict[int, float], ...] = tuple({} for _ in self.names)
        for u, d, rows in zip(self.upstream, self.downstream, self.stream_rows, strict=True):
            for one, other in ((int(u), int(d)), (int(d), int(u))):
                links[one][other] = links[one].get(other, 0.0) + float(rows)
        return links

    @cached_property
    def neighbours(self) -> tuple[Members, ...]:
        """For each operator the set of its neighbours."""
        return tuple(members_of(links) for links in self.links)

    @cached_property
    def choices(self) -> tuple[tuple[tuple[str, ...], ...], ...]:
        """For each operator what it may share with others: a column, or an exact operator's key."""
        exact = [key for key, whole in zip(self.keys, self.exact, strict=False) if whole]
        whole = dict.fromkeys(tuple(sorted(key)) for key in exact if len(key) > 1)
        made = []
        for position, key in enumerate(self.keys):
            own = [(name,) for name in key] + [w for w in whole if set(w) <= set(key)]
            if self.exact and self.exact[position]:
                own = [one for one in own if set(one) == set(key)]
            made.append(tuple(own))
        return tuple(made)

    @cached_property
    def attributes(self) -> tuple[tuple[str, ...], ...]:
        """All that operators may share, sorted."""
        return tuple(sorted({one for own in self.choices for one in own}))

    @cached_property
    def key_bits(self) -> tuple[int, ...]:
        """For each operator its key as bits, one per attribute; ANY_KEY when it has none."""
        bit = {one: 1 << position for position, one in enumerate(self.attributes)}
        return tuple(sum(bit[one] for one in own) if own else ANY_KEY for own in self.choices)

    def shared_key_bits(self, members: Members) -> int:
        """The intersection of the members' keys; 0 says they are not compatible."""
        shared = ANY_KEY
        for position in positions_of(members):
            shared &= self.key_bits[position]
        return shared

    def measured_alike(self, members: Members) -> list[int]:
        """Members whose histograms are by the key that all of them share: those hold for all."""
        if not self.measured_by:
            return []
        key = set(self.component_key(members))
        return [p for p in positions_of(members) if set(self.measured_by[p] or ()) == key]

    def component_key(self, members: Members) -> tuple[str, ...]:
        """What the members share, in the order of the first that has a key; () if none has."""
        keys = [self.keys[p] for p in positions_of(members) if self.keys[p]]
        return tuple(name for name in keys[0] if all(name in key for key in keys)) if keys else ()

    def connected_pieces(self, members: Members) -> list[Members]:
        """The members split where no stream joins them, by the lowest position of each piece."""
        pieces = []
        rest = members
        while rest:
            piece = frontier = rest & -rest
            while frontier:
                reached = 0
                for position in positions_of(frontier):
                    reached |= self.neighbours[position]
                frontier = reached & members & ~piece
                piece |= frontier
            pieces.append(piece)
            rest &= ~piece
        return pieces

    def is_component(self, members: Members) -> bool:
        """Definition 1 of Guo and Zhou 2017: connected, and compatible."""
        return (
            members != 0
            and self.shared_key_bits(members) != 0
            and len(self.connected_pieces(members)) == 1
        )

    def internal_rows(self, members: Members) -> float:
        """phi: rows of the streams with both ends inside, which fusing saves."""
        inside = 0.0
        for position in positions_of(members):
            for other, rows in self.links[position].items():
                if other > position and members >> other & 1:
                    inside += rows
        return inside

    def internal_rows_of(self, components: Sequence[Members]) -> Floats:
        """phi of many components at once."""
        width = (self.size + 7) // 8
        inside = np.zeros(len(components))
        for start in range(0, len(components), _COMPONENTS_AT_ONCE):
            block = components[start : start + _COMPONENTS_AT_ONCE]
            packed = b"".join(members.to_bytes(width, "little") for members in block)
            octets = np.frombuffer(packed, dtype=np.uint8).reshape(len(block), width)
            member = np.unpackbits(octets, axis=1, bitorder="little").astype(bool)
            both = member[:, self.upstream] & member[:, self.downstream]
            inside[start : start + len(block)] = both @ self.stream_rows
        return inside

    def rows_between(self, position: int, members: Members) -> float:
        """Rows of the streams between one operator and a set."""
        return sum(rows for o, rows in self.links[position].items() if members >> o & 1)


def operator_graph(
    operators: Sequence[OperatorStatistics], streams: Sequence[StreamStatistics]
) -> OperatorGraph:
    """The graph, or InvalidInput with one sentence that names what is wrong."""
    if not operators:
        raise InvalidInput("operators is empty; name at least one operator.")
    names = tuple(operator.name for operator in operators)
    position = {name: number for number, name in enumerate(names)}
    if len(position) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise InvalidInput(f"operators names {twice!r} twice; names must be unique.")
    for number, stream in enumerate(streams):
        _check_ends(f"streams[{number}]", stream, position)
    _check_acyclic(streams)
    windows, groups = _common_shape(operators, streams)
    inputs = np.zeros((len(names), windows, groups))
    fed = np.zeros(len(names), dtype=bool)
    outputs = np.zeros_like(inputs)
    for stream in streams:
        rows = _spread(stream.load_rows, windows, groups)
        inputs[position[stream.downstream]] += rows
        fed[position[stream.downstream]] = True
        if stream.upstream is not None:
            outputs[position[stream.upstream]] += rows
    # Where no stream feeds an operator its input was not measured; its output is the best guess.
    inputs[~fed] = outputs[~fed]
    state = np.zeros_like(inputs)
    for number, operator in enumerate(operators):
        if operator.state_rows is not None:
            state[number] = operator.state_rows
    between = [s for s in streams if s.upstream is not None]
    return OperatorGraph(
        names=names,
        keys=tuple(operator.key for operator in operators),
        upstream=np.array([position[str(s.upstream)] for s in between], dtype=np.int64),
        downstream=np.array([position[s.downstream] for s in between], dtype=np.int64),
        stream_rows=np.array([s.total_rows for s in between], dtype=np.float64),
        input_rows=inputs,
        state_rows=state,
        measured_by=tuple(operator.measured_by for operator in operators),
        exact=tuple(operator.exact for operator in operators),
    )


def _check_ends(field: str, stream: StreamStatistics, position: dict[str, int]) -> None:
    for end, name in (("from", stream.upstream), ("to", stream.downstream)):
        if name is not None and name not in position:
            raise InvalidInput(
                f"{field}.{end} is {name!r}, which is not an operator; known: "
                f"{', '.join(list(position)[:20])}."
            )


def _check_acyclic(streams: Sequence[StreamStatistics]) -> None:
    graph: nx.DiGraph[str] = nx.DiGraph()
    graph.add_edges_from((s.upstream, s.downstream) for s in streams if s.upstream is not None)
    if not nx.is_directed_acyclic_graph(graph):
        edges = nx.find_cycle(graph)
        path = " -> ".join([edges[0][0], *(edge[1] for edge in edges)])
        raise InvalidInput(f"streams close the cycle {path}; the operator graph must have none.")


def _common_shape(
    operators: Sequence[OperatorStatistics], streams: Sequence[StreamStatistics]
) -> tuple[int, int]:
    """The windows and key groups of all histograms; (1, 1) when there is none."""
    first: tuple[str, tuple[int, ...]] | None = None
    shapes = [
        (f"operators[{n}].state", o.state_rows.shape)
        for n, o in enumerate(operators)
        if o.state_rows is not None
    ]
    shapes += [
        (f"streams[{n}].load", s.load_rows.shape)
        for n, s in enumerate(streams)
        if isinstance(s.load_rows, np.ndarray)
    ]
    for field, shape in shapes:
        if len(shape) != 2 or 0 in shape:
            raise InvalidInput(f"{field} must be a histogram of windows x key groups.")
        first = first or (field, shape)
        if shape != first[1]:
            raise InvalidInput(
                f"{field} is {_times(shape)} but {first[0]} is {_times(first[1])}; all histograms "
                "must have the same windows x key groups."
            )
    return (first[1][0], first[1][1]) if first else (1, 1)


def _times(shape: tuple[int, ...]) -> str:
    return " x ".join(map(str, shape))


def _spread(load_rows: Floats | float, windows: int, groups: int) -> Floats:
    if isinstance(load_rows, np.ndarray):
        return load_rows
    return np.full((windows, groups), load_rows / (windows * groups))
