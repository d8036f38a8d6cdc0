"""The stateful step of windows of event time: a bucket of keys and its panes so far."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from penstock.spark.windows import partials
from penstock.spark.windows.kernels import Kernel
from penstock.spark.windows.partials import Partials
from penstock.spark.windows.results import Result
from penstock.spark.windows.shape import WindowShape, made, windows_of
from penstock.spark.windows.state_format import of_the_same, packed, renumbered
from penstock.spark.windows.user import Where

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
            emitted, content = of_the_same(state, self.made_for, self.where)
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
            key = renumbered(source.keys, entries.keys)[key]
            order = np.lexsort((window, key))
            key, window = key[order], window[order]
        for start in range(0, len(key), _OUTPUT_ROWS):
            part = (key[start : start + _OUTPUT_ROWS], window[start : start + _OUTPUT_ROWS])
            rows = made(entries, part, self.shape, self.kernels, self.results, self.where)
            if rows is not None:
                yield packed(rows)

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
        # There is nothing to emit; the state is only to be forgotten when its time has come.
        return int(self.shape.end(self.shape.last_window(entries.pane)).min())


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
