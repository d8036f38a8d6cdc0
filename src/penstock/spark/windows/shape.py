"""How windows lie over panes: pure arithmetic on window, slide and origin."""

import math
from dataclasses import dataclass

import numpy as np

from penstock.model.observation import Ints


@dataclass(frozen=True)
class WindowShape:
    """Windows of `length` every `slide`, in microseconds of event time or in rows of a key.

    A pane is gcd(length, slide) long (Balkesen et al. 2013, s. 4.2), so every window is a whole
    number of panes. Window number i covers [origin + i slide, origin + i slide + length).

    >>> shape = WindowShape(10, 4)
    >>> shape.pane, shape.panes_per_window, shape.panes_per_slide
    (2, 5, 2)
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
