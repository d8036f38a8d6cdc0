"""What claims of several parts share: which parts failed, and numbers with their spread."""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np


def failed(parts: Mapping[str, bool]) -> str:
    """The parts that do not hold, as one sentence; empty when all do."""
    missing = [part for part, holds in parts.items() if not holds]
    return f"not so: {'; '.join(missing)}." if missing else ""


def spread(values: Iterable[float], form: str = ".3g") -> str:
    """Mean and standard deviation over the seeds.

    >>> spread([1.0, 3.0])
    '2 ± 1'
    """
    given = np.asarray(list(values), dtype=np.float64)
    return f"{given.mean():{form}} ± {given.std():{form}}"


def listed(values: Sequence[float]) -> list[float]:
    """Mean and standard deviation as numbers."""
    return [float(np.mean(values)), float(np.std(values))]


def clearly_below(ours: Sequence[float], theirs: Sequence[float], least: float) -> bool:
    """Whether the first are lower by more than their spreads together, and by something.

    >>> clearly_below([1.0, 1.2], [2.0, 2.2], 0.1), clearly_below([1.0, 2.0], [1.5, 2.5], 0.1)
    (True, False)
    """
    gap = float(np.mean(theirs) - np.mean(ours))
    return gap > max(least, float(np.std(ours) + np.std(theirs)))
