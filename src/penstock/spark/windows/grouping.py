"""Rows or entries gathered by key and pane."""

from dataclasses import dataclass

import numpy as np

from penstock.model.observation import Ints

_SPARE = 1_000_000  # a table of this many places more than rows is cheaper than sorting


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
