"""What is known of streams beforehand (Balkesen et al. 2013, s. 2.4, fig. 4), as columns.

Ten characteristics, any subset of them; NaN (or no transition) is "not known". Times are counted
in periods of the controller, from the moment a stream joined.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock.errors import InvalidInput
from penstock.model.observation import Floats

TRANSITIONS = ("", "jump", "trend")  # not known, at once, gradually
NOT_KNOWN, JUMP, TREND = 0, 1, 2


@dataclass(frozen=True)
class StreamMetadata:
    """One row a stream.

    A cycle starts with a burst at the greatest rate and goes on idle at the least; `phase` is how
    far into its cycle the stream was when it joined. With the transition `trend` the rate climbs
    through the burst and falls through the idle part. `slope` is the change of rate in a period.
    """

    expected_rate_per_s: Floats
    least_rate_per_s: Floats
    greatest_rate_per_s: Floats
    cycle_periods: Floats
    phase_periods: Floats
    burst_periods: Floats
    idle_periods: Floats
    transition: NDArray[np.int8]  # place in TRANSITIONS
    slope_per_period: Floats
    lifetime_periods: Floats

    def __len__(self) -> int:
        return len(self.transition)

    @property
    def cycle(self) -> Floats:
        """Length of the cycle: as declared, or of its two parts."""
        parts = self.burst_periods + self.idle_periods
        return np.where(np.isnan(self.cycle_periods), parts, self.cycle_periods)

    def take(self, rows: NDArray[Any]) -> "StreamMetadata":
        """The metadata of some streams."""
        return StreamMetadata(*(getattr(self, field.name)[rows] for field in fields(self)))


# Names of the characteristics in documents and files, in the order of the columns.
NAMES = (
    "expected_rate", "least_rate", "greatest_rate", "period", "phase", "burst", "idle",
    "transition", "slope", "lifetime",
)  # fmt: skip


def nothing_known(count: int) -> StreamMetadata:
    """Of so many streams nothing is known."""
    columns: list[Any] = [np.full(count, np.nan) for _ in NAMES]
    columns[NAMES.index("transition")] = np.zeros(count, dtype=np.int8)
    return StreamMetadata(*columns)


def one_unknown_before(metadata: StreamMetadata) -> StreamMetadata:
    """The same streams after one of which nothing is known."""
    before = nothing_known(1)
    columns = [f.name for f in fields(metadata)]
    return StreamMetadata(
        *(np.concatenate([getattr(before, n), getattr(metadata, n)]) for n in columns)
    )


def metadata_from(rows: Sequence[Mapping[str, Any]], field: str = "streams") -> StreamMetadata:
    """Columns of rows that hold any of NAMES; contradictions are refused with their row."""
    columns: list[Any] = []
    for name in NAMES:
        if name == "transition":
            codes = [_transition(row.get(name)) for row in rows]
            columns.append(np.array(codes, dtype=np.int8))
        else:
            values = [row.get(name) for row in rows]
            columns.append(np.array([np.nan if v is None else float(v) for v in values]))
    metadata = StreamMetadata(*columns)
    _check(metadata, field)
    return metadata


def _transition(name: str | None) -> int:
    if name is None:
        return NOT_KNOWN
    if name not in TRANSITIONS[1:]:
        raise InvalidInput(f"transition is {name!r}; allowed: {', '.join(TRANSITIONS[1:])}.")
    return TRANSITIONS.index(name)


def _check(metadata: StreamMetadata, field: str) -> None:
    low, mean, high = (
        metadata.least_rate_per_s, metadata.expected_rate_per_s, metadata.greatest_rate_per_s,
    )  # fmt: skip
    length = metadata.cycle_periods
    for name, wrong, rule in (
        ("least_rate", low > high, "it must not exceed greatest_rate"),
        ("expected_rate", mean < low, "it must be at least least_rate"),
        ("expected_rate", mean > high, "it must not exceed greatest_rate"),
        ("burst", metadata.burst_periods > length, "it must not exceed the period"),
        ("idle", metadata.idle_periods > length, "it must not exceed the period"),
        ("period", metadata.cycle <= 0, "it must be greater than zero"),
    ):
        rows = np.flatnonzero(wrong)  # a comparison with NaN is false: what is unknown is allowed
        if len(rows):
            raise InvalidInput(f"{field}[{rows[0]}].meta.{name} contradicts the rest; {rule}.")


@dataclass(frozen=True)
class Defaults:
    """Averages over the streams seen, for what neither a client nor a history provides."""

    expected_rate_per_s: float
    least_rate_per_s: float
    greatest_rate_per_s: float
    burst_share: float  # of a cycle
    burst_periods: float  # NaN when no stream declares one, as the next
    idle_periods: float


def defaults_from(history: Floats, metadata: StreamMetadata) -> Defaults:
    """Averages of what was measured, or else of what was declared, or else zero."""
    least, means, greatest = _extremes(history)
    share = metadata.burst_periods / metadata.cycle
    return Defaults(
        expected_rate_per_s=_average(means, metadata.expected_rate_per_s, 0.0),
        least_rate_per_s=_average(least, metadata.least_rate_per_s, 0.0),
        greatest_rate_per_s=_average(greatest, metadata.greatest_rate_per_s, 0.0),
        burst_share=_average((), share, 0.5),
        burst_periods=_average((), metadata.burst_periods, np.nan),
        idle_periods=_average((), metadata.idle_periods, np.nan),
    )


def _extremes(history: Floats) -> tuple[Floats, Floats, Floats]:
    """Least, mean and greatest rate of each stream that was seen at all."""
    gaps = np.isnan(history)
    if history.size == 0 or gaps.all():
        return np.empty(0), np.empty(0), np.empty(0)
    if not gaps.any():  # the usual case; the forms that mind gaps copy the table each time
        return history.min(axis=1), history.mean(axis=1), history.max(axis=1)
    seen = history[~gaps.all(axis=1)]
    return np.nanmin(seen, axis=1), np.nanmean(seen, axis=1), np.nanmax(seen, axis=1)


def completed(metadata: StreamMetadata, defaults: Defaults) -> StreamMetadata:
    """Where one part of a cycle is all that is declared of it, the other is an average one."""
    burst, idle = metadata.burst_periods, metadata.idle_periods
    open_end = np.isnan(metadata.cycle_periods)
    lacks_idle = open_end & np.isnan(idle) & ~np.isnan(burst)
    lacks_burst = open_end & np.isnan(burst) & ~np.isnan(idle)
    return replace(
        metadata,
        burst_periods=np.where(lacks_burst, defaults.burst_periods, burst),
        idle_periods=np.where(lacks_idle, defaults.idle_periods, idle),
    )


def _average(measured: Sequence[float] | Floats, declared: Floats, otherwise: float) -> float:
    if len(measured):
        return float(np.mean(measured))
    known = declared[~np.isnan(declared)]
    return float(known.mean()) if len(known) else otherwise
