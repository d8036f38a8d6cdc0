"""The load of the elastic benchmark: a stream that runs already, and what then happens to it."""

from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from penstock.workloads.csv_load import csv_load
from penstock.workloads.gantries import RushHour
from penstock.workloads.profiles import RateProfile, knots, steps

LOADS = Path(__file__).parent / "loads"
LOW_PER_S, HIGH_PER_S = 150.0, 600.0
WARM_UP_S, REST_S = 40.0, 15.0  # at the low rate: before the first load, and after each
POINT_S = 4.0  # how long an hour of the real curve lasts
HOURS = slice(24, 48)  # of the curve: a whole day of departures


@dataclass(frozen=True)
class Part:
    """One load, by when its rows arrive."""

    name: str
    begins_s: float
    ends_s: float


@dataclass(frozen=True)
class Course:
    """Loads one after the other in one stream."""

    parts: tuple[Part, ...]
    profile: RateProfile


def ramp() -> RateProfile:
    """1 -> 4 -> 1 in under two minutes."""
    return RushHour(10, 35, 60, 70, 100).profile(LOW_PER_S, HIGH_PER_S)


def burst() -> RateProfile:
    """Three times the load from one moment to the next, for a quarter of a minute, twice."""
    high = 3 * LOW_PER_S
    return steps([(10, LOW_PER_S), (15, high), (20, LOW_PER_S), (15, high), (10, LOW_PER_S)])


def curve() -> RateProfile:
    """A day of departures from New York, an hour of it in four seconds."""
    whole = csv_load(LOADS / "flights_summer.csv", peak_per_s=HIGH_PER_S, step_s=POINT_S)
    values = whole.rates_per_s[::2][HOURS]
    return steps([(POINT_S, value) for value in values])


ALL = {"ramp": ramp, "burst": burst, "curve": curve}
SHORT = "short"


def course(case: str = "") -> Course:
    """Warm-up, then one load or all of them with a rest after each."""
    if case == SHORT:
        wanted, warm_up_s = {SHORT: RushHour(8, 12, 20, 24, 30).profile(50, 200)}, 5.0
    else:
        wanted = {name: make() for name, make in ALL.items() if case in ("", name)}
        warm_up_s = WARM_UP_S
    times, rates, parts = [0.0, warm_up_s], [LOW_PER_S, LOW_PER_S], list[Part]()
    for name, load in wanted.items():
        begins_s = times[-1]
        times += [begins_s + t for t in load.times_s]
        rates += load.rates_per_s
        parts.append(Part(name, begins_s, times[-1]))
        times += [times[-1], times[-1] + REST_S]
        rates += [LOW_PER_S, LOW_PER_S]
    return Course(tuple(parts), knots(times, rates))


def within(part: Part, at_s: tuple[float, ...], values: tuple[float, ...]) -> float:
    """The integral over a part of a value that holds from each time to the next."""
    return sum(
        value * max(0.0, min(end, part.ends_s) - max(begin, part.begins_s))
        for (begin, end), value in zip(pairwise(at_s), values, strict=False)
    )
