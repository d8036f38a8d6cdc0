"""A toll road's gantries: streams of reports of which some are there for the rush hour only.

Together they go 1 -> 4 -> 1. Four stand all day and report twice as much in the rush hour; eight
are opened for it. Some vehicles report far more often than others, so keys are skewed.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from penstock.model.sources import Admission, Streams
from penstock.workloads.generator import Generator
from penstock.workloads.profiles import RateProfile, knots

ALWAYS, FOR_RUSH = 4, 8
VEHICLES, SKEW = 400, 0.9
OPENED_AHEAD_S = 8.0  # a gantry is known before its first vehicle comes


@dataclass(frozen=True)
class RushHour:
    """When the load rises, how long it is high, when it is over; seconds after the start."""

    begins_s: float = 15.0
    high_s: float = 55.0
    falls_s: float = 80.0
    over_s: float = 92.0
    end_s: float = 145.0

    def profile(self, low_per_s: float, high_per_s: float) -> RateProfile:
        """A rate that is low, rises, is high, falls, and is low again."""
        times = [0.0, self.begins_s, self.high_s, self.falls_s, self.over_s, self.end_s]
        return knots(times, [low_per_s, low_per_s, high_per_s, high_per_s, low_per_s, low_per_s])


@dataclass(frozen=True)
class Gantries:
    """All streams of reports, for a load that begins with `base_rate_per_s`."""

    base_rate_per_s: float
    rush: RushHour = RushHour()
    seed: int = 7

    @property
    def load(self) -> RateProfile:
        """Of all gantries together."""
        return self.rush.profile(self.base_rate_per_s, 4 * self.base_rate_per_s)

    @property
    def always(self) -> dict[str, Generator]:
        """Gantries that stand all day."""
        share = self.base_rate_per_s / ALWAYS
        return self._made("main", ALWAYS, self.rush.profile(share, 2 * share))

    @property
    def for_rush(self) -> dict[str, Generator]:
        """Gantries that are opened for the rush hour."""
        high = 2 * self.base_rate_per_s / FOR_RUSH
        return self._made("extra", FOR_RUSH, self.rush.profile(0.0, high))

    @property
    def all(self) -> dict[str, Generator]:
        """Every gantry by its name."""
        return self.always | self.for_rush

    @property
    def rows(self) -> int:
        """Reports of all gantries over all time."""
        return sum(generator.rows or 0 for generator in self.all.values())

    def known(self, gantry: str) -> dict[str, Any]:
        """What is known of a gantry beforehand."""
        peak = self.all[gantry].rate.peak_rate_per_s
        return {"greatest_rate": peak, "transition": "trend"}

    def openings(self) -> Mapping[str, float]:
        """When gantries of the rush hour are opened; seconds after the start."""
        first_s = max(0.0, self.rush.begins_s - OPENED_AHEAD_S)
        return {name: first_s + place for place, name in enumerate(self.for_rush)}

    def streams(self, declared: str, admission: Admission) -> Streams:
        """As a source; `declared` is a file that names those which stand all day."""
        return Streams(
            generators=self.all, declared=declared, discover=False, admission=admission
        )  # fmt: skip

    def declaration(self) -> str:
        """The text of that file."""
        lines = []
        for name in self.always:
            peak = self.known(name)["greatest_rate"]
            lines += [f'[streams."{name}"]', f"greatest_rate = {peak}", 'transition = "trend"', ""]
        return "\n".join(lines)

    def _made(self, kind: str, count: int, rate: RateProfile) -> dict[str, Generator]:
        rows = int(rate.rows)
        return {
            f"{kind}-{n}": Generator(
                rate, keys=VEHICLES, skew=SKEW, seed=self.seed + 100 * len(kind) + n, rows=rows
            )
            for n in range(1, count + 1)
        }
