"""Who sends how much to whom, and how much of it stays on its node."""

from dataclasses import dataclass

import numpy as np

from penstock.allocation.problem import Floats, Ints


@dataclass(frozen=True)
class Traffic:
    """Rates between key groups as columns; `operator` names each key group's operator by number."""

    source: Ints
    target: Ints
    rate: Floats
    operator: Ints

    def collocation(self, placement: Ints) -> float:
        """The share of all traffic that does not leave its node; NaN without traffic."""
        total = float(self.rate.sum())
        if not total > 0:
            return float("nan")
        local = placement[self.source] == placement[self.target]
        return float(self.rate[local].sum()) / total


def no_traffic(groups: int) -> Traffic:
    """Key groups that do not talk."""
    nothing = np.empty(0, dtype=np.int64)
    return Traffic(nothing, nothing, np.empty(0), np.zeros(groups, dtype=np.int64))
