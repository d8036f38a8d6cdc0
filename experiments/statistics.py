"""Numbers over the seeds: mean and spread, clear differences, and orders that agree."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Spread:
    """Mean and standard deviation over the seeds, printed in the form that is asked for.

    >>> f"{Spread(0.5, 0.25):.0%}", f"{Spread(2.0, 1.0)}"
    ('50% ± 25%', '2 ± 1')
    """

    mean: float
    deviation: float

    def __format__(self, form: str) -> str:
        form = form or ".3g"
        return f"{self.mean:{form}} ± {self.deviation:{form}}"

    @property
    def pair(self) -> list[float]:
        """As JSON."""
        return [self.mean, self.deviation]


def spread(values: Iterable[float]) -> Spread:
    """The spread of one value a seed."""
    given = np.asarray(list(values), dtype=np.float64)
    return Spread(float(given.mean()), float(given.std()))


def clearly_below(ours: Sequence[float], theirs: Sequence[float], least: float) -> bool:
    """Whether the first are lower by more than their spreads together, and by something.

    >>> clearly_below([1.0, 1.2], [2.0, 2.2], 0.1), clearly_below([1.0, 2.0], [1.5, 2.5], 0.1)
    (True, False)
    """
    gap = float(np.mean(theirs) - np.mean(ours))
    return gap > max(least, float(np.std(ours) + np.std(theirs)))


def rank_correlation(estimated: Sequence[float], seen: Sequence[float]) -> float:
    """Spearman's: whether two columns order the same things alike.

    >>> rank_correlation([1.0, 2.0, 3.0], [2.0, 20.0, 200.0])
    1.0
    """
    return float(np.corrcoef(_ranks(estimated), _ranks(seen))[0, 1])


def _ranks(values: Sequence[float]) -> list[float]:
    """Places in order; equal values share the mean of theirs."""
    return [
        sum(other < value for other in values) + (sum(other == value for other in values) - 1) / 2
        for value in values
    ]
