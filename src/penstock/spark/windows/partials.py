"""Partial results of keys and panes: gathered, merged, cut, and as bytes."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.errors import PenstockError
from penstock.model.observation import Ints
from penstock.spark.windows.kernels import Kernel, State, narrowed
from penstock.spark.windows.state_format import numbered
from penstock.spark.windows.user import GroupError, Where

_SPARE = 1_000_000  # a table of this many places more than rows is cheaper than sorting
_LZ4 = pa.ipc.IpcWriteOptions(compression="lz4")


@dataclass(frozen=True)
class Grouping:
    """`group` of each row; `key` and `pane` of each group, ascending by key, then pane."""

    group: Ints
    key: Ints
    pane: Ints

    @property
    def groups(self) -> int:
        """How many groups there are."""
        return len(self.key)


def grouped(key: Ints, keys: int, pane: Ints) -> Grouping:
    """Number the pairs of key and pane that occur."""
    if len(pane) == 0:
        return Grouping(*(np.empty(0, dtype=np.int64) for _ in range(3)))
    low, high = int(pane.min()), int(pane.max())
    room = 4 * len(pane) + _SPARE
    if keys * (high - low + 1) <= room:
        offset, panes, values = pane - low, high - low + 1, None
    else:  # few panes far apart
        values, offset = np.unique(pane, return_inverse=True)
        panes = len(values)
    code = key * panes + offset
    if keys * panes <= room:
        present = np.zeros(keys * panes, dtype=bool)
        present[code] = True
        codes = np.flatnonzero(present)
        group = np.cumsum(present)[code] - 1
    else:
        codes, group = np.unique(code, return_inverse=True)
    found_key, found = np.divmod(codes, panes)
    return Grouping(group, found_key, found + low if values is None else values[found])


@dataclass(frozen=True)
class Partials:
    """Entries ascend by key, then pane; `keys` has a row for each key an entry may have."""

    keys: Any  # an Arrow table
    key: Ints
    pane: Ints
    states: tuple[State, ...]  # for each kernel

    def of_entries(self, selected: Any) -> "Partials":
        """Some of the entries, by a mask or by ascending positions; all keys stay."""
        states = tuple(_taken(state, selected) for state in self.states)
        return Partials(self.keys, self.key[selected], self.pane[selected], states)

    def used_keys(self) -> "Partials":
        """Without keys that have no entry."""
        used = np.zeros(self.keys.num_rows, dtype=bool)
        used[self.key] = True
        if used.all():
            return self
        keys = self.keys.filter(pa.array(used)).combine_chunks()
        return Partials(keys, (np.cumsum(used) - 1)[self.key], self.pane, self.states)

    def to_bytes(self, kernels: Sequence[Kernel]) -> bytes:
        """As Arrow: the keys, then the entries with only their distance to the entry before."""
        base = int(self.pane.min(initial=0)) if len(self.pane) else 0
        columns: dict[str, Any] = {
            "key": pa.array(narrowed(np.diff(self.key, prepend=0))),
            "pane": pa.array(narrowed(self.pane - base)),
        }
        for number, (kernel, state) in enumerate(zip(kernels, self.states, strict=True)):
            stored = kernel.to_arrow(state)
            columns.update({f"s{number}_{place}": part for place, part in enumerate(stored)})
        entries = pa.table(columns).replace_schema_metadata({"base": str(base)})
        sink = pa.BufferOutputStream()
        for table in (self.keys, entries):
            with pa.ipc.new_stream(sink, table.schema, options=_LZ4) as writer:
                writer.write_table(table)
        return bytes(sink.getvalue().to_pybytes())

    @classmethod
    def from_bytes(cls, data: bytes, kernels: Sequence[Kernel]) -> "Partials":
        """What `to_bytes` made."""
        source = pa.BufferReader(data)
        keys = pa.ipc.open_stream(source).read_all()
        entries = pa.ipc.open_stream(source).read_all().combine_chunks()
        base = int(entries.schema.metadata[b"base"])
        states = []
        for number, kernel in enumerate(kernels):
            prefix = f"s{number}_"
            names = [name for name in entries.column_names if name.startswith(prefix)]
            states.append(kernel.from_arrow([_array(entries.column(name)) for name in names]))
        key = np.cumsum(_array(entries.column("key")).to_numpy(), dtype=np.int64)
        pane = _array(entries.column("pane")).to_numpy().astype(np.int64) + base
        return cls(keys, key, pane, tuple(states))


def of_rows(
    rows: Any, keys: Sequence[str], pane: Ints, kernels: Sequence[Kernel], where: Where
) -> Partials:
    """The partials of an Arrow table of rows, each in a pane."""
    key, distinct = numbered(rows.select(list(keys)))
    found = grouped(key, distinct.num_rows, pane)
    columns = {name: _array(rows.column(name)) for kernel in kernels for name in kernel.inputs}

    def state(kernel: Kernel) -> State:
        inputs = [columns[name] for name in kernel.inputs]
        return kernel.of_rows(inputs, found.group, found.groups)

    return _made(distinct, found, kernels, state, where)


def merged(parts: Sequence[Partials], kernels: Sequence[Kernel], where: Where) -> Partials:
    """One for several, their states merged where key and pane are the same."""
    if len(parts) == 1:
        return parts[0]
    numbers, keys = numbered(pa.concat_tables([part.keys for part in parts]))
    starts = np.cumsum([0, *(part.keys.num_rows for part in parts)])
    key = np.concatenate(
        [numbers[part.key + start] for part, start in zip(parts, starts, strict=False)]
    )
    pane = np.concatenate([part.pane for part in parts])
    found = grouped(key, keys.num_rows, pane)
    joined = [_joined([part.states[number] for part in parts]) for number, _ in enumerate(kernels)]
    by_kernel = dict(zip(map(id, kernels), joined, strict=True))
    return _made(
        keys, found, kernels,
        lambda kernel: kernel.of_states(by_kernel[id(kernel)], found.group, found.groups), where,
    )  # fmt: skip


def _made(
    keys: Any, found: Grouping, kernels: Sequence[Kernel],
    state: Callable[[Kernel], State], where: Where,
) -> Partials:  # fmt: skip
    try:
        states = tuple(state(kernel) for kernel in kernels)
    except GroupError as error:
        raise error_at_key(error, keys, int(found.key[error.group]), where) from error
    return Partials(keys, found.key, found.pane, states)


def error_at_key(error: GroupError, keys: Any, key: int, where: Where) -> PenstockError:
    """The sentence for a user's function that failed on a key."""
    values = keys.slice(key, 1).to_pylist()[0].values()
    shown = ", ".join(f"{name}={value!r}" for name, value in zip(where.by, values, strict=False))
    return PenstockError(f"{where.operator}: {error.said}, at key ({shown}).")


def _joined(states: Sequence[State]) -> State:
    columns = []
    for parts in zip(*states, strict=True):
        if isinstance(parts[0], np.ndarray):
            columns.append(np.concatenate(parts))
        else:
            columns.append(pa.concat_arrays([_array(part) for part in parts]))
    return tuple(columns)


def _taken(state: State, selected: Any) -> State:
    return tuple(
        column[selected] if isinstance(column, np.ndarray) else _arrow_taken(column, selected)
        for column in state
    )


def _arrow_taken(column: Any, selected: Any) -> Any:
    places = np.flatnonzero(selected) if selected.dtype == bool else selected
    return column.take(pa.array(places))


def _array(column: Any) -> Any:
    if isinstance(column, pa.ChunkedArray):
        if column.num_chunks == 0:
            return pa.array([], column.type)
        return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
    return column
