"""The stateful step of windows of rows: a bucket of keys, their counts, and their last panes."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from penstock.model.observation import Ints
from penstock.spark.windows import partials
from penstock.spark.windows.kernels import Kernel
from penstock.spark.windows.partials import Partials
from penstock.spark.windows.results import Result
from penstock.spark.windows.shape import WindowShape, made, windows_of
from penstock.spark.windows.state_format import numbered, of_the_same, packed, renumbered
from penstock.spark.windows.user import Where


@dataclass(frozen=True)
class RowStep:
    """A function for applyInPandasWithState over rows, for windows of a key's last rows.

    Rows of a key are numbered in the order of `time` within a batch, if it is given, then of the
    lane and of their place in it; rows of a later batch come later.
    """

    keys: tuple[str, ...]
    time: str | None
    shape: WindowShape
    kernels: tuple[Kernel, ...]
    results: tuple[tuple[str, Result], ...]
    where: Where
    made_for: str  # what the state belongs to; panes mean nothing to another query

    def __call__(
        self, key: tuple[Any, ...], frames: Iterable[Any], state: Any
    ) -> Iterator[pd.DataFrame]:
        """One bucket in one batch."""
        rows = self._ordered(frames)
        held, seen = self._held(state, rows)
        number, keys, before, after = _counted(held.keys, seen, rows.select(list(self.keys)))
        pane = self.shape.panes_of(number)
        fresh = partials.of_rows(rows, self.keys, pane, self.kernels, self.where)
        entries = partials.merged([held, fresh], self.kernels, self.where)
        of_key = renumbered(entries.keys, keys)
        found, rest = full_windows(
            entries, before[of_key], after[of_key], self.shape, self.kernels, self.results,
            self.where,
        )  # fmt: skip
        if found is not None:
            yield packed(found)
        counted = rest.keys.append_column("seen", pa.array(after[of_key]))
        content = replace(rest, keys=counted).to_bytes(self.kernels)
        state.update((self.made_for, 0, content))

    def _held(self, state: Any, rows: Any) -> tuple[Partials, Ints]:
        """The entries so far, and how many rows each of their keys has had."""
        if not state.exists:
            none = rows.slice(0, 0)
            pane = np.empty(0, dtype=np.int64)
            return partials.of_rows(none, self.keys, pane, self.kernels, self.where), pane
        _, content = of_the_same(state, self.made_for, self.where)
        held = Partials.from_bytes(content, self.kernels)
        seen = held.keys.column("seen").to_numpy()
        return replace(held, keys=held.keys.drop_columns("seen")), seen

    def _ordered(self, frames: Iterable[Any]) -> Any:
        tables = []
        for frame in frames:
            for lane, content in zip(frame["lane"], frame["content"], strict=True):
                table = pa.ipc.open_stream(content).read_all()
                place = int(table.schema.metadata[b"number"])
                tables.append((lane, place, table.replace_schema_metadata(None)))
        tables.sort(key=lambda item: item[:2])
        rows = pa.concat_tables([table for _, _, table in tables]).combine_chunks()
        if self.time is None:
            return rows
        at = rows.column(self.time).combine_chunks().view(pa.int64())
        # Rows without a time come first.
        order = np.argsort(at.fill_null(-(2**63)).to_numpy(), kind="stable")
        return rows.take(pa.array(order)).combine_chunks()


def full_windows(
    entries: Partials, before: Ints, after: Ints, shape: WindowShape,
    kernels: tuple[Kernel, ...], results: tuple[tuple[str, Result], ...], where: Where,
) -> tuple["pa.Table | None", Partials]:  # fmt: skip
    """Windows that became full, and the entries that later ones need.

    `before` and `after` are the rows that each key had and has, without a gap.
    """
    emitted, full = (_last_full(rows, shape)[entries.key] for rows in (before, after))
    first = np.maximum(np.maximum(shape.first_window(entries.pane), emitted + 1), 0)
    last = np.minimum(shape.last_window(entries.pane), full)
    windows = windows_of(entries.key, first, last)
    found = made(entries, windows, shape, kernels, results, where)
    return found, entries.of_entries(shape.last_window(entries.pane) > full)


def _last_full(rows: Ints, shape: WindowShape) -> Ints:
    """The last window that so many rows fill."""
    return np.floor_divide(rows - shape.length, shape.slide)


def _counted(known: Any, seen: Ints, keys: Any) -> tuple[Ints, Any, Ints, Ints]:
    """Numbers of the rows within their keys, all keys, and their rows before and after."""
    codes, distinct = numbered(pa.concat_tables([known, keys]))
    before = np.zeros(distinct.num_rows, dtype=np.int64)
    before[codes[: known.num_rows]] = seen
    number, after = _numbers(codes[known.num_rows :], before)
    return number, distinct, before, after


def _numbers(key: Ints, before: Ints) -> tuple[Ints, Ints]:
    """The number of each row within its key, from 0 on, and how many rows each key has now."""
    order = np.argsort(key, kind="stable")
    count = np.bincount(key, minlength=len(before))
    start = np.cumsum(count) - count
    number = np.empty(len(key), dtype=np.int64)
    number[order] = np.arange(len(key)) - np.repeat(start, count)
    return number + before[key], before + count
