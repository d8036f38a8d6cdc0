"""Correction of a model's latency by what was measured (Fu et al. 2017, s. III-B and V-C1).

    measured = offset + factor x estimate, by least squares over the pairs of a run

The estimate orders allocations well but may be low (it knows no network); the line brings it to
what is really seen. With few pairs, or pairs that all lie together, only the factor is fitted.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass

from penstock.scaling.models.lines import line_through

_LEAST_PAIRS = 5
_LEAST_SPREAD = 0.1  # of the mean estimate; below it a slope would be noise
_FACTORS = (0.1, 20.0)  # outside is a sign of a wrong model, not of a correction
_LEAST_SLOPE = 0.8  # noise in the estimates flattens a line, which would then promise too much


@dataclass(frozen=True)
class Correction:
    """The line from estimate to measured latency, and how far the pairs lie from it."""

    offset_s: float = 0.0
    factor: float = 1.0
    error_s: float = math.nan
    pairs: int = 0

    def corrected_s(self, estimate_s: float) -> float:
        """What is to be expected where the model says `estimate_s`."""
        return self.offset_s + self.factor * estimate_s

    def bound_s(self, max_latency_s: float) -> float:
        """The estimate whose corrected value is the bound; not above zero when there is none."""
        return (max_latency_s - self.offset_s) / self.factor

    def __str__(self) -> str:
        if not self.pairs:
            return "uncorrected"
        return (
            f"corrected by {self.offset_s:.3g} s + {self.factor:.3g} x estimate "
            f"(error {self.error_s:.2g} s over {self.pairs} pairs)"
        )


def fit_correction(pairs: Iterable[tuple[float, float]]) -> Correction:
    """The line through pairs of (estimate, measured latency) in seconds."""
    usable = [
        (estimate, measured)
        for estimate, measured in pairs
        if 0 < estimate < math.inf and 0 < measured < math.inf
    ]
    if not usable:
        return Correction()
    line = line_through(usable)
    mean = sum(estimate for estimate, _ in usable) / len(usable)
    deviation = math.sqrt(line.spread / line.count)
    enough = line.count >= _LEAST_PAIRS and deviation >= _LEAST_SPREAD * mean
    if enough and _LEAST_SLOPE <= line.slope <= _FACTORS[1] and line.at(0.0) >= 0:
        return Correction(line.at(0.0), line.slope, line.error, line.count)
    return _proportional(usable)


def _proportional(pairs: list[tuple[float, float]]) -> Correction:
    """measured = factor x estimate: the factor that makes the sums equal."""
    low, high = _FACTORS
    total = sum(measured for _, measured in pairs) / sum(estimate for estimate, _ in pairs)
    factor = min(max(total, low), high)
    error = math.sqrt(sum((m - factor * e) ** 2 for e, m in pairs) / len(pairs))
    return Correction(0.0, factor, error, len(pairs))
