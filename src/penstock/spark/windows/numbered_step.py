"""The stateful step of windows of rows that have numbers: panes are made before the shuffle.

A row's number within its key says its pane, wherever the row is read, so lanes reduce rows to pane
partials as they do for windows of time. A pane is full when it has all its rows; they may come in
any order.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from penstock.model.observation import Ints
from penstock.spark.windows import partials
from penstock.spark.windows.kernels import Kernel
from penstock.spark.windows.partials import Partials, error_at_key
from penstock.spark.windows.results import Result
from penstock.spark.windows.row_step import full_windows
from penstock.spark.windows.shape import WindowShape
from penstock.spark.windows.state_format import of_the_same, packed, renumbered
from penstock.spark.windows.user import GroupError, Where


@dataclass(frozen=True)
class NumberedStep:
    """A function for applyInPandasWithState over pane partials; the last kernel counts rows."""

    shape: WindowShape
    kernels: tuple[Kernel, ...]
    results: tuple[tuple[str, Result], ...]
    where: Where
    made_for: str

    def __call__(
        self, key: tuple[Any, ...], frames: Iterable[Any], state: Any
    ) -> Iterator[pd.DataFrame]:
        """One bucket in one batch."""
        parts = [
            Partials.from_bytes(content, self.kernels)
            for frame in frames
            for content in frame["content"]
        ]
        held, seen = self._held(state)
        known = [] if held is None else [held]
        entries = partials.merged([*known, *parts], self.kernels, self.where)
        before = np.zeros(entries.keys.num_rows, dtype=np.int64)
        if held is not None:
            before[renumbered(held.keys, entries.keys)] = seen
        after = self._without_gaps(entries, before)
        found, rest = full_windows(
            entries, before, after, self.shape, self.kernels, self.results, self.where
        )
        if found is not None:
            yield packed(found)
        counted = rest.keys.append_column("seen", pa.array(after))
        content = replace(rest, keys=counted).to_bytes(self.kernels)
        state.update((self.made_for, 0, content))

    def _held(self, state: Any) -> tuple[Partials | None, Ints]:
        """The entries so far, and up to which number rows of each key came without a gap."""
        if not state.exists:
            return None, np.empty(0, dtype=np.int64)
        _, content = of_the_same(state, self.made_for, self.where)
        held = Partials.from_bytes(content, self.kernels)
        seen = held.keys.column("seen").to_numpy()
        return replace(held, keys=held.keys.drop_columns("seen")), seen

    def _without_gaps(self, entries: Partials, before: Ints) -> Ints:
        """Up to which number all rows of each key have come, in whole panes."""
        rows: Ints = entries.states[-1][0]
        twice = np.flatnonzero(rows > self.shape.pane)
        if len(twice):
            first = int(entries.pane[twice[0]]) * self.shape.pane
            said = (
                f"{rows[twice[0]]} rows are numbered {first} to {first + self.shape.pane - 1}; "
                "numbers of a key's rows must be unique"
            )
            error = GroupError(int(twice[0]), said)
            raise error_at_key(error, entries.keys, int(entries.key[twice[0]]), self.where)
        begun = before[entries.key] // self.shape.pane
        later = np.flatnonzero(entries.pane >= begun)
        key, pane = entries.key[later], entries.pane[later]
        count = np.bincount(key, minlength=len(before))
        rank = np.arange(len(key)) - np.repeat(np.cumsum(count) - count, count)
        gap = (pane != begun[later] + rank) | (rows[later] < self.shape.pane)
        whole = count.copy()
        np.minimum.at(whole, key[gap], rank[gap])
        after: Ints = before + whole * self.shape.pane
        return after
