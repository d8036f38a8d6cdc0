"""Panes, and plain panes dealt round robin (Balkesen et al. 2013, s. 4.2)."""

import math

import numpy as np
from numpy.typing import ArrayLike

from penstock.errors import InvalidInput
from penstock.model.observation import Ints


def pane_length(window: int, slide: int) -> int:
    """gcd(w, s) of window w and slide s, in the unit they are given in (ticks or rows).

    >>> pane_length(12, 4)
    4
    """
    if window < 1 or slide < 1:
        raise InvalidInput(
            f"window is {window} and slide is {slide}; give whole numbers of at least 1."
        )
    return math.gcd(window, slide)


def pane_numbers(ticks: ArrayLike, length: int) -> Ints:
    """The pane each row belongs to, by its time in ticks or its number in the stream."""
    return np.asarray(ticks, dtype=np.int64) // length


def pane_routes(panes: Ints, nodes: int) -> Ints:
    """Whole panes to the nodes in turn."""
    return panes % nodes
