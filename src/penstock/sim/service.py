"""How long rows take: laws given by mean and squared coefficient of variation."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from penstock.errors import InvalidInput

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

USUAL_SCV = {
    "deterministic": 0.0, "exponential": 1.0, "lognormal": 1.0, "gamma": 1.0, "uniform": 1.0 / 3.0,
}  # fmt: skip
FIXED_SCV = ("deterministic", "exponential")


@dataclass(frozen=True)
class ServiceTime:
    """Processor-seconds one row takes; `scv` is its variance over its squared mean."""

    kind: str
    mean_s: float
    scv: float | None = None

    def __post_init__(self) -> None:
        if self.kind not in USUAL_SCV:
            raise InvalidInput(f"service.kind is {self.kind!r}; allowed: {', '.join(USUAL_SCV)}.")
        if not (math.isfinite(self.mean_s) and self.mean_s > 0):
            raise InvalidInput(
                f"service.mean is {self.mean_s!r}; it must be a finite time above 0."
            )
        if self.scv is None:
            object.__setattr__(self, "scv", USUAL_SCV[self.kind])
        scv = self.variation
        if not (math.isfinite(scv) and scv >= 0):
            raise InvalidInput(f"service.scv is {scv!r}; it must be a finite number of at least 0.")
        if self.kind in FIXED_SCV and scv != USUAL_SCV[self.kind]:
            raise InvalidInput(
                f"service.scv is {scv!r}, but {self.kind} times have {USUAL_SCV[self.kind]:g}; "
                "leave it out, or choose gamma or lognormal."
            )
        if self.kind == "uniform" and scv > USUAL_SCV["uniform"]:
            raise InvalidInput(f"service.scv is {scv!r}; uniform times have at most 1/3.")

    @property
    def variation(self) -> float:
        """The squared coefficient of variation, with the kind's usual one filled in."""
        return USUAL_SCV[self.kind] if self.scv is None else self.scv

    def total_s(self, rows: Ints, rng: np.random.Generator) -> Floats:
        """For each entry, the sum of that many independent service times.

        Sums of exponential and gamma times are exact. A sum of several lognormal or uniform times
        is drawn from the gamma law of the same mean and variance; a single one is exact.
        """
        scv, mean = self.variation, self.mean_s
        if scv == 0:
            return np.asarray(rows * mean, dtype=np.float64)
        if self.kind in ("exponential", "gamma"):
            return rng.standard_gamma(rows / scv) * (mean * scv)
        several = rows > 1
        if not several.any():
            return np.where(rows > 0, self._single_s(len(rows), rng), 0.0)
        total = rng.standard_gamma(rows / scv) * (mean * scv)
        single = rows == 1
        total[single] = self._single_s(int(single.sum()), rng)
        return total

    def one_s(self, rows: int, rng: np.random.Generator) -> float:
        """The sum of that many service times, once."""
        scv, mean = self.variation, self.mean_s
        if scv == 0:
            return rows * mean
        if rows == 1 and self.kind in ("lognormal", "uniform"):
            return float(self._single_s(1, rng)[0])
        return float(rng.standard_gamma(rows / scv)) * mean * scv

    def _single_s(self, count: int, rng: np.random.Generator) -> Floats:
        if self.kind == "lognormal":
            sigma_squared = math.log1p(self.variation)
            mu = math.log(self.mean_s) - 0.5 * sigma_squared
            return rng.lognormal(mu, math.sqrt(sigma_squared), count)
        half = self.mean_s * math.sqrt(3.0 * self.variation)
        return rng.uniform(self.mean_s - half, self.mean_s + half, count)
