"""How windows lie over panes, which of them a batch concerns, and what each is made of."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.model.observation import Ints
from penstock.spark.windows.kernels import Kernel
from penstock.spark.windows.partials import Partials, error_at_key
from penstock.spark.windows.results import Result
from penstock.spark.windows.user import GroupError, Where

Windows = tuple[Ints, Ints]  # key and number of each window, ascending


@dataclass(frozen=True)
class WindowShape:
    """Windows of `length` every `slide`, in microseconds of event time or in rows of a key.

    A pane is gcd(length, slide) long (Balkesen et al. 2013, s. 4.2), so every window is a whole
    number of panes. Window number i covers [origin + i slide, origin + i slide + length).

    >>> shape = WindowShape(10, 4)
    >>> shape.pane, shape.panes_per_window, shape.panes_per_slide
    (2, 5, 2)
    >>> shape.windows_of_a_row
    3
    >>> shape.first_window(np.array([4])), shape.last_window(np.array([4]))
    (array([0]), array([2]))
    """

    length: int
    slide: int
    origin: int = 0

    @property
    def pane(self) -> int:
        """Length of a pane."""
        return math.gcd(self.length, self.slide)

    @property
    def panes_per_window(self) -> int:
        """How many panes a window has."""
        return self.length // self.pane

    @property
    def panes_per_slide(self) -> int:
        """How many panes a window moves on."""
        return self.slide // self.pane

    @property
    def windows_of_a_row(self) -> int:
        """The most windows that one row falls in."""
        return -(-self.length // self.slide)

    def panes_of(self, at: Ints) -> Ints:
        """The pane each moment (or row number) falls in."""
        return np.floor_divide(at - self.origin, self.pane)

    def first_window(self, pane: Ints) -> Ints:
        """The first window that contains a pane."""
        return -np.floor_divide(self.panes_per_window - 1 - pane, self.panes_per_slide)

    def last_window(self, pane: Ints) -> Ints:
        """The last window that contains a pane."""
        return np.floor_divide(pane, self.panes_per_slide)

    def first_pane(self, window: Ints) -> Ints:
        """The first pane of a window."""
        return window * self.panes_per_slide

    def start(self, window: Ints) -> Ints:
        """Where a window starts."""
        return window * self.slide + self.origin

    def end(self, window: Ints) -> Ints:
        """Where a window ends; that moment is not in it."""
        return self.start(window) + self.length

    def last_ended(self, moment: int) -> int:
        """The last window whose end is not after a moment."""
        return (moment - self.origin - self.length) // self.slide


def windows_of(key: Ints, first: Ints, last: Ints) -> Windows:
    """All windows of the entries, each once; entry e of a key is in windows first[e] to last[e].

    >>> windows_of(np.array([0, 0, 1]), np.array([1, 2, 5]), np.array([3, 4, 5]))
    (array([0, 0, 0, 0, 1]), array([1, 2, 3, 4, 5]))
    """
    if len(key) == 0:
        return key, first
    fresh = first.copy()
    # Both ends ascend within a key, so only what is beyond the entry before is new.
    same = key[1:] == key[:-1]
    seen = np.maximum(first[:-1], last[:-1] + 1)
    fresh[1:] = np.where(same, np.maximum(first[1:], seen), first[1:])
    count = np.maximum(last - fresh + 1, 0)
    starts = np.cumsum(count) - count
    window = np.arange(int(count.sum())) - np.repeat(starts - fresh, count)
    return np.repeat(key, count), window


def made(
    entries: Partials, windows: Windows, shape: WindowShape, kernels: Sequence[Kernel],
    results: Sequence[tuple[str, Result]], where: Where,
) -> "pa.Table | None":  # fmt: skip
    """Keys, window numbers and values of the windows; None if there are none."""
    key, window = windows
    if len(key) == 0:
        return None
    low, high = _ranges(entries, key, window, shape)
    try:
        states = [
            kernel.of_ranges(state, low, high)
            for kernel, state in zip(kernels, entries.states, strict=True)
        ]
    except GroupError as error:
        raise error_at_key(error, entries.keys, int(entries.key[error.group]), where) from error
    try:
        values = {name: result(states) for name, result in results}
    except GroupError as error:
        raise error_at_key(error, entries.keys, int(key[error.group]), where) from error
    columns: dict[str, Any] = {
        name: entries.keys.column(name).take(pa.array(key)) for name in entries.keys.column_names
    }
    return pa.table({**columns, "window": pa.array(window), **values})


def _ranges(entries: Partials, key: Ints, window: Ints, shape: WindowShape) -> tuple[Ints, Ints]:
    """Where the panes of each window begin and end among the entries."""
    panes = np.unique(entries.pane)
    code = entries.key * (len(panes) + 1) + np.searchsorted(panes, entries.pane)
    first = shape.first_pane(window)
    low = np.searchsorted(panes, first)
    high = np.searchsorted(panes, first + shape.panes_per_window)
    base = key * (len(panes) + 1)
    return np.searchsorted(code, base + low), np.searchsorted(code, base + high)
