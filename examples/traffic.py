"""Where do traffic queues end? The query of Balkesen et al. 2013, s. 1.1, over generated reports.

SELECT getGridCoordinates(Long, Lat, @precision) AS AreaID, COUNT(*), AVG(Speed), MAX(Speed),
isQueueEnd(*) FROM Input [RANGE 60 MINUTE SLIDE 1 MINUTE] WHERE ReportType = 'traffic' GROUP BY
AreaID.

Windows of 60 panes, as in the paper, but of seconds instead of minutes, so that it ends soon.
"""

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from penstock import (
    Files,
    Generator,
    RateProfile,
    Route,
    Topology,
    UserAggregate,
    constant,
    window_aggregate,
)
from penstock.model.sinks import Sink

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

# Vehicles are where streets are busy: few places of the city send most reports (figure 2 of the
# paper), and where many are, they drive slowly or not at all.
REPORTS = """
    SELECT at AS time,
           row % 50000 AS vehicle,
           -122.52 + 0.14 * ((key * 7919) % 1000) / 1000 + 0.0004 * (value - 0.5) AS longitude,
           37.70 + 0.11 * ((key * 104729) % 1000) / 1000 + 0.0004 * (value - 0.5) AS latitude,
           CASE WHEN (row * 2654435761) % 7 < 7 DIV (key + 2) THEN 10 * value
                ELSE 30 + 60 * value END AS speed,
           CASE WHEN row % 10 = 0 THEN 'service' ELSE 'traffic' END AS report_type
    FROM input
"""
AREAS = "time TIMESTAMP, area BIGINT, speed DOUBLE"
BINS, BIN_KMH = 12, 10.0
SLOW_KMH, FAST_KMH = 20.0, 50.0
LEAST_SHARE = 0.1
_RADIUS_M = 6_378_137.0  # WGS 84
_FLATTENING = 1 / 298.257223563
_SCALE = 0.9996
_EAST_M = 500_000.0
_TILES = 10_000_000  # tiles of a metre from the equator to a pole


def grid_areas(longitude: Floats, latitude: Floats, precision_m: float) -> Ints:
    """The tile of each position, `precision_m` wide and high, in its zone of six degrees.

    Positions are projected by the transverse Mercator series (Krueger, to the third order), as the
    UTM does, so tiles have the same size everywhere.

    >>> grid_areas(np.array([-122.42, -122.42]), np.array([37.77, 37.7701]), 100.0).tolist()
    [100055100041804, 100055100041804]
    """
    zone = np.floor((longitude + 180.0) / 6.0).astype(np.int64) + 1
    east, north = _projected(np.radians(longitude - (6.0 * zone - 183.0)), np.radians(latitude))
    column = np.floor(east / precision_m).astype(np.int64)
    row = np.floor(north / precision_m).astype(np.int64)
    return (zone * _TILES // 10 + column) * _TILES + row


def _projected(angle: Floats, latitude: Floats) -> tuple[Floats, Floats]:
    n = _FLATTENING / (2 - _FLATTENING)
    radius = _RADIUS_M / (1 + n) * (1 + n**2 / 4 + n**4 / 64)
    terms = (
        n / 2 - 2 * n**2 / 3 + 5 * n**3 / 16,
        13 * n**2 / 48 - 3 * n**3 / 5,
        61 * n**3 / 240,
    )
    squeeze = 2 * np.sqrt(n) / (1 + n)
    sine = np.sin(latitude)
    conformal = np.sinh(np.arctanh(sine) - squeeze * np.arctanh(squeeze * sine))
    xi = np.arctan2(conformal, np.cos(angle))
    eta = np.arctanh(np.sin(angle) / np.sqrt(1 + conformal**2))
    east, north = eta.copy(), xi.copy()
    for order, term in enumerate(terms, start=1):
        east += term * np.cos(2 * order * xi) * np.sinh(2 * order * eta)
        north += term * np.sin(2 * order * xi) * np.cosh(2 * order * eta)
    return _EAST_M + _SCALE * radius * east, _SCALE * radius * north


class Areas:
    """A function for mapInArrow: positions become areas."""

    def __init__(self, precision_m: float) -> None:
        self._precision_m = precision_m

    def __call__(self, batches: Iterable[Any]) -> Iterator[Any]:
        """Time, area and speed of each report."""
        for batch in batches:
            longitude, latitude = (batch.column(n).to_numpy() for n in ("longitude", "latitude"))
            area = pa.array(grid_areas(longitude, latitude, self._precision_m))
            columns = [batch.column("time"), area, batch.column("speed")]
            yield pa.RecordBatch.from_arrays(columns, names=["time", "area", "speed"])


def _no_vehicles() -> dict[str, Any]:
    return {"bins": [0] * BINS}


def _seen(state: dict[str, Any], rows: Any) -> dict[str, Any]:
    speeds = rows.column("speed").drop_null().to_numpy()
    place = np.clip(speeds // BIN_KMH, 0, BINS - 1).astype(np.int64)
    counts = np.bincount(place, minlength=BINS).tolist()
    return {"bins": [held + more for held, more in zip(state["bins"], counts, strict=True)]}


def _together(left: dict[str, Any], right: dict[str, Any]) -> dict[str, Any]:
    return {"bins": [a + b for a, b in zip(left["bins"], right["bins"], strict=True)]}


def _is_queue_end(state: dict[str, Any]) -> bool:
    """Standing and moving vehicles meet in the area, and few drive at a speed between."""
    bins = state["bins"]
    slow, fast = int(SLOW_KMH / BIN_KMH), int(FAST_KMH / BIN_KMH)
    standing, between, moving = sum(bins[:slow]), sum(bins[slow:fast]), sum(bins[fast:])
    least = LEAST_SHARE * (standing + between + moving)
    return bool(min(standing, moving) > max(least, between / 2))


QUEUE_END = UserAggregate(
    columns=["speed"],
    state="bins ARRAY<BIGINT>",
    returns="BOOLEAN",
    init=_no_vehicles,
    update=_seen,
    merge=_together,
    result=_is_queue_end,
)
AGGREGATES: dict[str, str | UserAggregate] = {
    "reports": "count",
    "mean_speed": "avg(speed)",
    "top_speed": "max(speed)",
    "queue_end": QUEUE_END,
}


def traffic(
    rate: RateProfile,
    out: Sink,
    *,
    window: str = "60 minutes",
    slide: str = "1 minute",
    delay: str = "10 seconds",
    precision_m: float = 100.0,
    max_latency: str = "10s",
    places: int = 1_000,
    skew: float = 1.2,
    rows: int | None = None,
    lanes: int = 4,
    max_rows: int | None = None,
    route: Route | None = None,
    seed: int = 7,
) -> Topology:
    """The topology: input -> reports -> traffic areas -> windows.

    A route spreads the reports of busy places over tasks.
    """
    city = Topology("traffic", max_latency=max_latency)
    reports = Generator(
        rate, keys=places, skew=skew, seed=seed, rows=rows, lanes=lanes, max_rows=max_rows
    )
    city.source("input", reports, route=route)
    city.add("reports", REPORTS, upstream="input")

    @city.operator("reports")
    def areas(reports: Any) -> Any:
        wanted = reports.where("report_type = 'traffic'")
        return wanted.mapInArrow(Areas(precision_m), AREAS)

    @city.operator("areas")
    def queues(areas: Any) -> Any:
        timed = areas.withWatermark("time", delay)
        return window_aggregate(timed, by="area", window=window, slide=slide, aggregates=AGGREGATES)

    city.sink("out", "queues", out)
    return city


city = traffic(
    constant(1_000),
    Files("out/traffic", overwrite=True),
    window="6s",
    slide="100ms",
    delay="1 second",
    precision_m=1_000,
    rows=20_000,
    route=Route("frequency-aware", key="key", partitions=2),
)

if __name__ == "__main__":
    print(city.run(policy="static", key_groups=2))
