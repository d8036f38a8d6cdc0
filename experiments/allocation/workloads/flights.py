"""Jobs 2 to 4 of Madsen et al. 2017, s. 5.4, as traffic between key groups: flights of 2013.

Each operator has 100 key groups. A tuple costs one unit where an operator works on it, and one unit
at either end where it leaves its node (written out, read in). That an end costs as much as an
operator's work is chosen here: with it, collocating everything of job 2 halves the load, as the
paper found. A period is five days of flights. Rain scores and what the stores write come once a
day, as the paper's weather does.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from experiments.allocation.workloads.flight_data import flights, hashed, weather
from penstock.allocation.problem import Floats, Ints, summed_by
from penstock.allocation.traffic import Traffic

GROUPS = 100
DAYS_PER_PERIOD = 5
WORK = 1.0
SERIALISE = 1.0
DECILES = 10


@dataclass(frozen=True)
class Period:
    """Tuples that each key group worked on, and between which pairs they went."""

    worked: Floats
    traffic: Traffic
    rows: int

    def load(self, placement: Ints) -> Floats:
        """Work, and what writing out and reading in cost with this placement."""
        away = placement[self.traffic.source] != placement[self.traffic.target]
        sent = SERIALISE * self.traffic.rate * away
        groups = len(self.worked)
        ends = summed_by(self.traffic.source, sent, groups)
        ends += summed_by(self.traffic.target, sent, groups)
        return WORK * self.worked + ends


@dataclass(frozen=True)
class _Rows:
    """Each flight's key group in every operator's partitioning."""

    period: Ints
    plane: Ints
    route: Ints
    airport: Ints
    courier: Ints  # by carrier and tenth of the rain score


def periods(job: int, count: int) -> Iterator[Period]:
    """The first periods of a job, in order."""
    rows = _rows()
    for number in range(count):
        yield _period(job, rows, rows.period == number)


def most_periods() -> int:
    """How many there are."""
    return int(_rows().period.max())


def operators(job: int) -> int:
    """Operators with key groups."""
    return {2: 2, 3: 3, 4: 8}[job]


def _period(job: int, rows: _Rows, inside: np.ndarray) -> Period:
    delay, total, route, rain, joined, courier, kept_planes, kept_couriers = range(8)
    plane, at_route = rows.plane[inside], rows.route[inside]
    edges = [(delay, plane, total, plane)]
    if job >= 3:
        edges.append((delay, plane, route, at_route))
    if job >= 4:
        airport, by_courier = rows.airport[inside], rows.courier[inside]
        planes_seen = np.unique(plane)
        starts = np.unique(np.stack([airport, at_route]), axis=1)
        edges += [
            (route, at_route, joined, at_route),
            # One score a day for each route that begins at the airport.
            (rain, np.repeat(starts[0], DAYS_PER_PERIOD), joined,
             np.repeat(starts[1], DAYS_PER_PERIOD)),
            (joined, at_route, courier, by_courier),
            # The stores take a result of each key group once a day.
            (total, np.repeat(planes_seen, DAYS_PER_PERIOD), kept_planes,
             np.repeat(planes_seen, DAYS_PER_PERIOD)),
            (courier, np.repeat(np.unique(by_courier), DAYS_PER_PERIOD), kept_couriers,
             np.repeat(np.unique(by_courier), DAYS_PER_PERIOD)),
        ]  # fmt: skip
    count = operators(job) * GROUPS
    pairs = np.concatenate(
        [np.stack([a * GROUPS + out, b * GROUPS + into]) for a, out, b, into in edges], axis=1
    )
    seen, rate = np.unique(pairs[0] * count + pairs[1], return_counts=True)
    traffic = Traffic(
        seen // count, seen % count, rate.astype(np.float64), np.arange(count) // GROUPS
    )
    worked = summed_by(traffic.target, traffic.rate, count)
    worked += np.bincount(plane, minlength=count)  # what comes in from outside
    return Period(worked, traffic, int(inside.sum()))


@lru_cache(maxsize=1)
def _rows() -> _Rows:
    table, hours = flights(), weather()
    at_s = table["at"].cast("int64").to_numpy() // 1_000_000
    hour = at_s // 3600
    score = dict(
        zip(
            zip(
                (hours["at"].cast("int64").to_numpy() // 3_600_000_000).tolist(),
                hours["origin"].to_pylist(),
                strict=True,
            ),
            hours["rain"].to_pylist(),
            strict=True,
        )
    )
    origin = table["origin"].to_pylist()
    rain = np.array([score.get(key, 0.0) for key in zip(hour.tolist(), origin, strict=True)])
    tenth = np.minimum(rain // (100 / DECILES), DECILES - 1).astype(np.int64)
    tenths = pa.chunked_array([pa.array(tenth).cast(pa.string())])
    courier = pc.binary_join_element_wise(table["carrier"], tenths, "-")
    route = pc.binary_join_element_wise(table["origin"], table["dest"], "-")
    return _Rows(
        period=(at_s - at_s[0]) // (DAYS_PER_PERIOD * 86_400),
        plane=hashed(table["plane"], GROUPS),
        route=hashed(route, GROUPS),
        airport=hashed(table["origin"], GROUPS),
        courier=hashed(courier, GROUPS),
    )
