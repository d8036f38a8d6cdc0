"""Traffic watched by its vehicles: Balkesen et al. 2013, s. 1.1, with generated reports.

SELECT getGridCoordinates(Long, Lat, @precision) AS AreaID, COUNT(*), AVG(Speed), MAX(Speed),
isQueueEnd(*) FROM Input [RANGE 60 MINUTE SLIDE 1 MINUTE] WHERE ReportType = 'traffic' GROUP BY
AreaID.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.model.aggregates import UserAggregate
from penstock.model.durations import parse_duration_s
from penstock.model.route import Route
from penstock.model.sinks import Sink
from penstock.model.topology import Topology
from penstock.workloads.generator import Generator
from penstock.workloads.grid import grid_areas
from penstock.workloads.profiles import RateProfile

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
    window_aggregate: Callable[..., Any],
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

    `window_aggregate` is penstock.window_aggregate: what knows Spark is handed in. A route spreads
    the reports of busy places over tasks.
    """
    delay_ms = round(1000 * parse_duration_s(delay, "delay"))
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
        timed = areas.withWatermark("time", f"{delay_ms} milliseconds")
        return window_aggregate(timed, by="area", window=window, slide=slide, aggregates=AGGREGATES)

    city.sink("out", "queues", out)
    return city
