"""Rates that follow a named profile: constant, steps, trend, bursts, day; or knots given in full.

A profile is a piecewise-linear rate over time, so how many rows have come by a moment and when a
row comes are exact: no sampling, no step width, the same answer on every machine.
"""

import inspect
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from penstock.errors import InvalidInput
from penstock.model.durations import parse_duration_s

Floats = NDArray[np.float64]

DAY_S = 86_400.0
DAY_KNOTS = 96  # a quarter of an hour each in a real day; the curve is off by less than 0.06 %
MOST_WINDOWS = 1_000_000


@dataclass(frozen=True)
class RateProfile:
    """A rate that is linear between knots; two knots at one time are a jump.

    After its last knot it repeats from the start, or holds the last rate. Before time zero there
    is no arrival. At a jump the later rate holds.

    >>> profile = steps([(10, 100.0), (10, 0.0), (10, 50.0)])
    >>> float(profile.rows_by(25.0))
    1250.0
    >>> float(profile.arrival_s(1249))
    25.0
    """

    times_s: tuple[float, ...]
    rates_per_s: tuple[float, ...]
    repeat: bool = False

    def __post_init__(self) -> None:
        times = np.asarray(self.times_s, dtype=np.float64)
        rates = np.asarray(self.rates_per_s, dtype=np.float64)
        if len(times) == 0 or len(times) != len(rates):
            raise InvalidInput(
                f"times_s has {len(times)} entries and rates_per_s {len(rates)}; give as many of "
                "each, at least one."
            )
        if times[0] != 0 or not np.isfinite(times).all() or (np.diff(times) < 0).any():
            raise InvalidInput("times_s must start at 0, be finite and never fall.")
        if not np.isfinite(rates).all() or (rates < 0).any():
            raise InvalidInput("rates_per_s must be finite numbers of at least 0.")
        if self.repeat and not times[-1] > 0:
            raise InvalidInput("repeat is true, but times_s ends at 0; give a later last knot.")
        with np.errstate(over="ignore"):
            total = float((np.diff(times) * (rates[1:] + rates[:-1])).sum())
        if not math.isfinite(total):
            raise InvalidInput("rates_per_s are too large: the number of rows is not finite.")

    @property
    def duration_s(self) -> float:
        """When the last knot comes: the time after which it repeats or holds its last rate."""
        return self.times_s[-1]

    @property
    def rows(self) -> float:
        """Expected rows until `duration_s`."""
        return float(self._rows_at_knots[-1])

    @property
    def peak_rate_per_s(self) -> float:
        """The highest rate it ever has."""
        return max(self.rates_per_s)

    def rate_per_s(self, t_s: ArrayLike) -> Floats:
        """The rate at each moment."""
        t = np.asarray(t_s, dtype=np.float64)
        _, local = self._folded(np.maximum(t, 0.0))
        segment, since = self._located(local)
        rate = self._rates[segment] + self._slopes[segment] * since
        return np.where(t < 0, 0.0, np.maximum(rate, 0.0))

    def rows_by(self, t_s: ArrayLike) -> Floats:
        """Expected rows that arrived in [0, t]: the exact integral of the rate."""
        t = np.maximum(np.asarray(t_s, dtype=np.float64), 0.0)
        rounds, local = self._folded(t)
        segment, since = self._located(local)
        inside = since * (self._rates[segment] + 0.5 * self._slopes[segment] * since)
        # A falling ramp is rounded below its end's total or above it; neither may be seen.
        ceiling = np.append(self._rows_at_knots[1:], np.inf)[segment]
        within = np.clip(self._rows_at_knots[segment] + inside, None, ceiling)
        return np.asarray(rounds * self.rows + within)

    def arrival_s(self, row: ArrayLike) -> Floats:
        """When the row of that 0-based number arrives; inf when it never does.

        Row r has arrived once `rows_by` reaches r + 1, so at any moment exactly the rows
        numbered below floor(rows_by(t)) have.
        """
        target = np.asarray(row, dtype=np.float64) + 1.0
        if self.repeat:
            if self.rows <= 0:
                return np.full(target.shape, np.inf)
            rounds = np.maximum(np.ceil(target / self.rows) - 1.0, 0.0)
            local = np.clip(target - rounds * self.rows, 0.0, self.rows)
            return np.asarray(rounds * self.duration_s + self._first_reaching(local))
        beyond, last = np.maximum(target - self.rows, 0.0), self._rates[-1]
        held = beyond / last if last > 0 else np.full(target.shape, np.inf)
        within = self._first_reaching(np.minimum(target, self.rows))
        return np.where(beyond > 0, self.duration_s + held, within)

    def scaled(self, factor: float) -> "RateProfile":
        """The same shape with every rate times a factor."""
        if not math.isfinite(factor) or factor < 0:
            raise InvalidInput(f"factor is {factor!r}; it must be a finite number of at least 0.")
        rates = tuple(rate * factor for rate in self.rates_per_s)
        return RateProfile(self.times_s, rates, self.repeat)

    def to_json(self) -> str:
        """JSON text that `from_json` reads back to an equal profile."""
        document = {
            "profile": "knots",
            "times_s": list(self.times_s),
            "rates_per_s": list(self.rates_per_s),
            "repeat": self.repeat,
        }
        return json.dumps(document)

    @classmethod
    def from_json(cls, text: str) -> "RateProfile":
        """The profile of a JSON object, in the form of `to_json` or any that `named` takes."""
        try:
            document = json.loads(text)
        except (json.JSONDecodeError, RecursionError) as error:
            raise InvalidInput(f"the rate profile is not JSON: {error}.") from error
        if not isinstance(document, dict):
            raise InvalidInput("the rate profile must be a JSON object.")
        return named(document)

    @cached_property
    def _times(self) -> Floats:
        return np.asarray(self.times_s, dtype=np.float64)

    @cached_property
    def _rates(self) -> Floats:
        return np.asarray(self.rates_per_s, dtype=np.float64)

    @cached_property
    def _slopes(self) -> Floats:
        widths = np.diff(self._times)
        rises = np.diff(self._rates)
        # The last knot starts the segment that is held for ever: slope zero.
        return np.append(np.divide(rises, widths, out=np.zeros_like(rises), where=widths > 0), 0.0)

    @cached_property
    def _rows_at_knots(self) -> Floats:
        areas = np.diff(self._times) * 0.5 * (self._rates[1:] + self._rates[:-1])
        return np.concatenate(([0.0], np.cumsum(areas)))

    def _folded(self, t: Floats) -> tuple[Floats, Floats]:
        """Whole repetitions before each moment, and the time since the last of them."""
        if not self.repeat:
            return np.zeros_like(t), t
        rounds = np.floor(t / self.duration_s)
        return rounds, np.clip(t - rounds * self.duration_s, 0.0, self.duration_s)

    def _located(self, local: Floats) -> tuple[NDArray[np.intp], Floats]:
        """The segment each moment falls into, and the time since it began."""
        segment = np.searchsorted(self._times, local, side="right") - 1
        return segment, local - self._times[segment]

    def _first_reaching(self, target: Floats) -> Floats:
        """The first moment by which `target` rows (at most all of one round) have come."""
        if len(self._times) == 1:
            return np.zeros_like(target)
        segment = np.clip(np.searchsorted(self._rows_at_knots, target) - 1, 0, len(self._times) - 2)
        need = np.maximum(target - self._rows_at_knots[segment], 0.0)
        rate, slope = self._rates[segment], self._slopes[segment]
        # need = rate*x + slope*x^2/2, solved in the form that never subtracts near equals.
        root = np.sqrt(np.maximum(rate * rate + 2.0 * slope * need, 0.0))
        width = np.diff(self._times)[segment]
        fill = np.divide(2.0 * need, rate + root, out=np.zeros_like(need), where=need > 0)
        return np.asarray(self._times[segment] + np.minimum(fill, width))


def constant(rate_per_s: float) -> RateProfile:
    """One rate for ever."""
    return RateProfile((0.0,), (_rate(rate_per_s, "rate_per_s"),))


def steps(steps: Sequence[tuple[float | str, float]], repeat: bool = False) -> RateProfile:
    """Rates that hold for a duration each; the last one holds for ever unless it repeats."""
    if not _is_list(steps) or len(steps) == 0:
        raise InvalidInput(f"steps is {steps!r}; give at least one [duration, rate_per_s].")
    times, rates, end_s = list[float](), list[float](), 0.0
    for number, step in enumerate(steps):
        if not _is_list(step) or len(step) != 2:
            raise InvalidInput(f"steps[{number}] is {step!r}; give [duration, rate_per_s].")
        rate = _rate(step[1], f"steps[{number}][1]")
        times += [end_s, end_s + parse_duration_s(step[0], f"steps[{number}][0]")]
        rates += [rate, rate]
        end_s = times[-1]
    return RateProfile(tuple(times), tuple(rates), _flag(repeat, "repeat"))


def trend(
    start_per_s: float, end_per_s: float, duration_s: float | str, repeat: bool = False
) -> RateProfile:
    """A straight line from one rate to another."""
    rates = (_rate(start_per_s, "start_per_s"), _rate(end_per_s, "end_per_s"))
    return RateProfile(
        (0.0, parse_duration_s(duration_s, "duration_s")), rates, _flag(repeat, "repeat")
    )


def bursts(
    base_per_s: float,
    factor: float,
    probability: float,
    seed: int,
    window_s: float | str = 10.0,
    duration_s: float | str = 3600.0,
) -> RateProfile:
    """Windows at a base rate, each a burst of `factor` times it with a probability; repeats."""
    base, times = _rate(base_per_s, "base_per_s"), _rate(factor, "factor")
    chance = _rate(probability, "probability")
    if chance > 1:
        raise InvalidInput(f"probability is {probability!r}; it must be between 0 and 1.")
    if isinstance(seed, bool) or not isinstance(seed, int) or seed < 0:
        raise InvalidInput(f"seed is {seed!r}; it must be a whole number of at least 0.")
    window = parse_duration_s(window_s, "window_s")
    count = math.ceil(parse_duration_s(duration_s, "duration_s") / window)
    if count > MOST_WINDOWS:
        raise InvalidInput(f"duration_s holds {count} windows of window_s; at most {MOST_WINDOWS}.")
    burst = np.random.default_rng(seed).random(count) < chance
    rates = np.where(burst, base * times, base)
    edges = np.arange(count + 1) * window
    knots = np.column_stack((edges[:-1], edges[1:])).ravel()
    return RateProfile(tuple(knots.tolist()), tuple(np.repeat(rates, 2).tolist()), repeat=True)


def day(low_per_s: float, high_per_s: float, period_s: float | str = DAY_S) -> RateProfile:
    """A cosine from the low rate at the start to the high one at half the period; repeats."""
    low, high = _rate(low_per_s, "low_per_s"), _rate(high_per_s, "high_per_s")
    period = parse_duration_s(period_s, "period_s")
    phase = np.linspace(0.0, 1.0, DAY_KNOTS + 1)
    share = 0.5 - 0.5 * np.cos(2.0 * np.pi * phase)
    rates = low + (high - low) * share
    return RateProfile(tuple((phase * period).tolist()), tuple(rates.tolist()), repeat=True)


def knots(
    times_s: Sequence[float], rates_per_s: Sequence[float], repeat: bool = False
) -> RateProfile:
    """The knots themselves."""
    for field, values in (("times_s", times_s), ("rates_per_s", rates_per_s)):
        if not _is_list(values):
            raise InvalidInput(f"{field} is {values!r}; give a list of numbers.")
    times = tuple(_rate(value, f"times_s[{i}]") for i, value in enumerate(times_s))
    rates = tuple(_rate(value, f"rates_per_s[{i}]") for i, value in enumerate(rates_per_s))
    return RateProfile(times, rates, _flag(repeat, "repeat"))


PROFILES: Mapping[str, Callable[..., RateProfile]] = {
    "constant": constant, "steps": steps, "trend": trend, "bursts": bursts, "day": day,
    "knots": knots,
}  # fmt: skip


def named(
    spec: Mapping[str, Any], profiles: Mapping[str, Callable[..., RateProfile]] = PROFILES
) -> RateProfile:
    """The profile of a mapping such as {"profile": "day", "low_per_s": 10, "high_per_s": 90}."""
    name = spec.get("profile")
    make = profiles.get(name) if isinstance(name, str) else None
    if make is None:
        raise InvalidInput(f"profile is {name!r}; allowed: {', '.join(profiles)}.")
    fields = inspect.signature(make).parameters
    known = list(fields)
    required = [key for key in known if fields[key].default is inspect.Parameter.empty]
    given = {key: value for key, value in spec.items() if key != "profile"}
    for key in given:
        if key not in known:
            raise InvalidInput(f"profile {name!r} has no field {key!r}; known: {', '.join(known)}.")
    for key in required:
        if key not in given:
            raise InvalidInput(f"profile {name!r} lacks {key!r}; required: {', '.join(required)}.")
    return make(**given)


def _rate(value: object, field: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float | np.number):
        raise InvalidInput(f"{field} is {value!r}; it must be a number.")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number) or number < 0:
        raise InvalidInput(f"{field} is {value!r}; it must be a finite number of at least 0.")
    return number


def _is_list(value: object) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str)


def _flag(value: object, field: str) -> bool:
    if not isinstance(value, bool):
        raise InvalidInput(f"{field} is {value!r}; it must be true or false.")
    return value
