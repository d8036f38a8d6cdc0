"""Whether two columns order the same things alike."""

from collections.abc import Sequence

import numpy as np


def rank_correlation(estimated: Sequence[float], seen: Sequence[float]) -> float:
    """Spearman's.

    >>> rank_correlation([1.0, 2.0, 3.0], [2.0, 20.0, 200.0])
    1.0
    """
    return float(np.corrcoef(ranks(estimated), ranks(seen))[0, 1])


def ranks(values: Sequence[float]) -> list[float]:
    """Places in order, equal values share the mean of theirs."""
    return [
        sum(other < value for other in values) + (sum(other == value for other in values) - 1) / 2
        for value in values
    ]
