"""The stateful step: a bucket of keys, its panes so far, and the windows a batch closes or changes.

State and rows in and out are bytes of Arrow: pandas would change integers with nulls into floats,
and Spark would otherwise handle one row per key and window twice.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from penstock.errors import PenstockError
from penstock.spark.windows import partials
from penstock.spark.windows.choosing import made, windows_of
from penstock.spark.windows.kernels import Kernel
from penstock.spark.windows.keys import numbered
from penstock.spark.windows.partials import Partials
from penstock.spark.windows.results import Result
from penstock.spark.windows.shape import WindowShape
from penstock.spark.windows.user import Where

STATE = "made_for STRING, emitted BIGINT, content BINARY"
OUTPUT = "content BINARY"
_NONE_EMITTED = -(2**62)  # microseconds; before any window
_OUTPUT_ROWS = 100_000


@dataclass(frozen=True)
class PaneStep:
    """A function for applyInPandasWithState over pane partials, for windows of event time.

    Spark's own rules: a window whose end the watermark of the batch before has passed takes no
    more rows; one whose end the present watermark has passed is final.
    """

    shape: WindowShape
    kernels: tuple[Kernel, ...]
    results: tuple[tuple[str, Result], ...]
    append: bool
    watermarked: bool
    where: Where
    made_for: str  # what the state belongs to; panes mean nothing to another query

    def __call__(
        self, key: tuple[Any, ...], frames: Iterable[Any], state: Any
    ) -> Iterator[pd.DataFrame]:
        """One bucket in one batch."""
        emitted, held = _NONE_EMITTED, None
        if state.exists:
            emitted, content = _of_the_same(state, self.made_for, self.where)
            held = Partials.from_bytes(content, self.kernels)
        contents, alive = _taken(frames)
        delta = self._merged([Partials.from_bytes(content, self.kernels) for content in contents])
        if delta is not None and self.watermarked:
            emitted = max(emitted, self._closed(delta, alive))
            delta = delta.of_entries(self._open(delta, emitted)).used_keys()
        entries = self._merged([part for part in (held, delta) if part is not None])
        now = state.getCurrentWatermarkMs() * 1000 if self.watermarked else _NONE_EMITTED
        if entries is not None:
            yield from self._output(entries, delta, emitted, now)
            entries = entries.of_entries(self._open(entries, now)).used_keys()
        self._keep(state, entries, max(emitted, now))

    def _merged(self, parts: Sequence[Partials]) -> Partials | None:
        parts = [part for part in parts if len(part.key)]
        return partials.merged(parts, self.kernels, self.where) if parts else None

    def _closed(self, delta: Partials, alive: frozenset[int]) -> int:
        """The end of the last window among the delta's that Spark calls late."""
        panes = np.unique(delta.pane)
        zero = np.zeros(len(panes), dtype=np.int64)
        first, last = self.shape.first_window(panes), self.shape.last_window(panes)
        ends = self.shape.end(windows_of(zero, first, last)[1])
        late = [end for end in ends.tolist() if end not in alive]
        return max(late, default=_NONE_EMITTED)

    def _open(self, entries: Partials, moment: int) -> Any:
        """Entries in some window that ends after a moment."""
        if moment == _NONE_EMITTED:
            return np.ones(len(entries.pane), dtype=bool)
        return self.shape.last_window(entries.pane) > self.shape.last_ended(moment)

    def _output(
        self, entries: Partials, delta: Partials | None, emitted: int, now: int
    ) -> Iterator[pd.DataFrame]:
        """Append: windows that have become final. Update: those the delta changed."""
        source = entries if self.append else delta
        most = self.shape.last_ended(now) if self.append else 2**62
        if source is None or len(source.key) == 0:
            return
        pane = source.pane
        first, last = self.shape.first_window(pane), self.shape.last_window(pane)
        if emitted != _NONE_EMITTED:
            first = np.maximum(first, self.shape.last_ended(emitted) + 1)
        key, window = windows_of(source.key, first, np.minimum(last, most))
        if source is not entries:
            key = _renumbered(source.keys, entries.keys)[key]
            order = np.lexsort((window, key))
            key, window = key[order], window[order]
        for start in range(0, len(key), _OUTPUT_ROWS):
            part = (key[start : start + _OUTPUT_ROWS], window[start : start + _OUTPUT_ROWS])
            rows = made(entries, part, self.shape, self.kernels, self.results, self.where)
            if rows is not None:
                yield _packed(rows)

    def _keep(self, state: Any, entries: Partials | None, emitted: int) -> None:
        if entries is None or len(entries.key) == 0:
            if state.exists:
                state.remove()
            return
        state.update((self.made_for, int(emitted), entries.to_bytes(self.kernels)))
        if self.watermarked:
            # Spark calls when the watermark is beyond the timeout, and windows are final when it
            # has reached their end: hence one millisecond less.
            end = self._next_end(entries, emitted)
            state.setTimeoutTimestamp(max(-(-end // 1000) - 1, 1))

    def _next_end(self, entries: Partials, emitted: int) -> int:
        if self.append:
            first = int(self.shape.first_window(entries.pane).min())
            first = max(first, self.shape.last_ended(emitted) + 1)
            return int(self.shape.end(np.array([first]))[0])
        # Nothing is to be told; the state is only to be forgotten when its time has come.
        return int(self.shape.end(self.shape.last_window(entries.pane)).min())


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
        held = None
        seen = np.empty(0, dtype=np.int64)
        if state.exists:
            _, content = _of_the_same(state, self.made_for, self.where)
            held = Partials.from_bytes(content, self.kernels)
            seen = held.keys.column("seen").to_numpy()
            held = replace(held, keys=held.keys.drop_columns("seen"))
        known = held.keys if held is not None else rows.select(list(self.keys)).slice(0, 0)
        numbers, keys = numbered(
            pa.concat_tables([known, rows.select(list(self.keys))], promote_options="none")
        )
        before = np.zeros(keys.num_rows, dtype=np.int64)
        before[numbers[: known.num_rows]] = seen
        number, after = _numbers(numbers[known.num_rows :], before)
        pane = self.shape.panes_of(number)
        parts = [partials.of_rows(rows, self.keys, pane, self.kernels, self.where)]
        if held is not None:
            parts.insert(0, held)
        entries = partials.merged(parts, self.kernels, self.where)
        of_key = _renumbered(entries.keys, keys)
        before, after = before[of_key], after[of_key]
        done = (before - self.shape.length) // self.shape.slide
        full = (after - self.shape.length) // self.shape.slide
        first = np.maximum(self.shape.first_window(entries.pane), done[entries.key] + 1)
        first = np.maximum(first, 0)
        last = np.minimum(self.shape.last_window(entries.pane), full[entries.key])
        windows = windows_of(entries.key, first, last)
        found = made(entries, windows, self.shape, self.kernels, self.results, self.where)
        if found is not None:
            yield _packed(found)
        rest = entries.of_entries(self.shape.last_window(entries.pane) > full[entries.key])
        keys = rest.keys.append_column("seen", pa.array(after))
        state.update((self.made_for, 0, replace(rest, keys=keys).to_bytes(self.kernels)))

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


def _of_the_same(state: Any, made_for: str, where: Where) -> tuple[int, bytes]:
    """The state, if it is one of the same query."""
    was, emitted, content = state.get
    if was != made_for:
        raise PenstockError(
            f"{where.operator}: the checkpoint was begun with {was}, and now it is {made_for}; "
            "give it a new checkpoint."
        )
    return emitted, content


def _numbers(key: Any, before: Any) -> tuple[Any, Any]:
    """The number of each row within its key, from 0 on, and how many rows each key has now."""
    order = np.argsort(key, kind="stable")
    count = np.bincount(key, minlength=len(before))
    start = np.cumsum(count) - count
    number = np.empty(len(key), dtype=np.int64)
    number[order] = np.arange(len(key)) - np.repeat(start, count)
    return number + before[key], before + count


def _renumbered(keys: Any, others: Any) -> Any:
    """For each of the keys its number among the others, all of which contain it."""
    numbers, _ = numbered(pa.concat_tables([others, keys]))
    place = np.empty(others.num_rows, dtype=np.int64)
    place[numbers[: others.num_rows]] = np.arange(others.num_rows)
    return place[numbers[others.num_rows :]]


def _taken(frames: Iterable[Any]) -> tuple[list[bytes], frozenset[int]]:
    """Contents, and the ends of windows that are still open to rows."""
    contents: list[bytes] = []
    alive: set[int] = set()
    for frame in frames:
        if len(frame) == 0:
            continue
        contents += [content for content in frame["content"] if content is not None]
        bare = frame.loc[frame["content"].isna(), "expires"]
        alive.update(bare.tolist())
    return contents, frozenset(alive)


def _packed(rows: Any) -> pd.DataFrame:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write_table(rows)
    return pd.DataFrame({"content": [sink.getvalue().to_pybytes()]})
