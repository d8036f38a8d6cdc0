"""Jobs 2 to 4 of Madsen et al. 2017 as topologies over the flights of 2013, day by day.

Job 2 sums the delays of each plane, job 3 also those of each route, and job 4 joins flights with
the rain at their origin and sums what each courier loses in it. Planes are known beforehand and are
looked up. `replay` writes the days that the sources read; a file stream takes some in each batch.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from experiments.allocation.workloads.flight_data import flights, planes, weather, write_days
from penstock.errors import InvalidInput
from penstock.model.sinks import Sink
from penstock.model.topology import Topology

DAYS_OF_2013 = 365
FLIGHTS_SCHEMA = (
    "flight_id BIGINT, at TIMESTAMP, plane STRING, carrier STRING, origin STRING, dest STRING, "
    "delay DOUBLE"
)
WEATHER_SCHEMA = "at TIMESTAMP, origin STRING, rain DOUBLE"

DELAYS = """
    SELECT f.flight_id, f.at, f.plane, f.carrier, f.origin, f.dest, greatest(f.delay, 0) AS late,
           coalesce(p.seats, 0) AS seats
    FROM {f} AS f LEFT JOIN {p} AS p ON f.plane = p.plane
"""

BY_PLANE = """
    SELECT plane, window.start AS since, sum(late) AS late, sum(late * seats) AS seat_minutes,
           count(*) AS flights
    FROM {timed} GROUP BY plane, window(at, '{days} days')
"""

BY_ROUTE = """
    SELECT origin, dest, window.start AS since, sum(late) AS late, count(*) AS flights
    FROM {timed} GROUP BY origin, dest, window(at, '{days} days')
"""

IN_RAIN = """
    SELECT f.carrier, f.at, f.late, w.rain
    FROM {f} AS f JOIN {w} AS w
    ON f.origin = w.origin AND date_trunc('HOUR', f.at) = w.hour
"""

BY_COURIER = """
    SELECT carrier, least(CAST(rain AS INT) DIV 10, 9) AS tenth, window.start AS since,
           sum(late) AS late, count(*) AS flights
    FROM {rainy}
    GROUP BY carrier, least(CAST(rain AS INT) DIV 10, 9), window(at, '{days} days')
"""


@dataclass(frozen=True)
class Replay:
    """Where the days lie, and how many a batch takes."""

    folder: Path
    days: int
    days_per_batch: int = 1

    def stream(self, name: str, schema: str) -> Callable[[Any], Any]:
        """A source for a topology: a function of the session."""

        def read(session: Any) -> Any:
            reader = session.readStream.schema(schema)
            reader = reader.option("maxFilesPerTrigger", self.days_per_batch)
            return reader.parquet(str(self.folder / name))

        return read


def replay(folder: Path, days: int, days_per_batch: int = 1) -> Replay:
    """Write the first days of 2013 for streams to replay; those there already are kept."""
    if not 1 <= days <= DAYS_OF_2013:
        raise InvalidInput(f"days is {days}; the flights are of {DAYS_OF_2013} days.")
    for name, table in (("flights", flights()), ("weather", weather())):
        if len(list((folder / name).glob("day-*.parquet"))) < days:
            write_days(table, folder / name, days)
    (folder / "planes").mkdir(parents=True, exist_ok=True)
    pq.write_table(planes(), folder / "planes" / "planes.parquet")
    return Replay(folder, days, days_per_batch)


def flights_job(
    job: int, source: Replay, sinks: Mapping[str, Sink], *, window_days: int = 5,
    max_latency: str = "30s",
) -> Topology:  # fmt: skip
    """Job 2, 3 or 4; sinks by name: `planes`, and `routes` from 3 on, and `couriers` in 4."""
    if job not in (2, 3, 4):
        raise InvalidInput(f"job is {job}; allowed: 2, 3, 4.")
    made = Topology(f"flights-job-{job}", max_latency=max_latency)
    made.source("flights", source.stream("flights", FLIGHTS_SCHEMA))

    @made.operator("flights")
    def delays(flights: Any) -> Any:
        session = flights.sparkSession
        known = session.read.parquet(str(source.folder / "planes"))
        return session.sql(DELAYS, f=flights, p=known)

    @made.operator("delays", key=["plane"])
    def by_plane(delays: Any) -> Any:
        return _windowed(delays, BY_PLANE, window_days)

    made.sink("planes", "by_plane", sinks["planes"])
    if job >= 3:

        @made.operator("delays", key=["origin", "dest"])
        def by_route(delays: Any) -> Any:
            return _windowed(delays, BY_ROUTE, window_days)

        made.sink("routes", "by_route", sinks["routes"])
    if job >= 4:
        _with_weather(made, source, sinks["couriers"], window_days)
    return made


def _with_weather(made: Topology, source: Replay, couriers: Sink, window_days: int) -> None:
    made.source("weather", source.stream("weather", WEATHER_SCHEMA))

    @made.operator(["delays", "weather"])
    def in_rain(delays: Any, weather: Any) -> Any:
        timed = delays.withWatermark("at", "1 hour")
        hours = weather.withWatermark("at", "1 hour").withColumnRenamed("at", "hour")
        return timed.sparkSession.sql(IN_RAIN, f=timed, w=hours)

    @made.operator("in_rain")
    def by_courier(in_rain: Any) -> Any:
        return in_rain.sparkSession.sql(BY_COURIER.replace("{days}", str(window_days)),
                                        rainy=in_rain)  # fmt: skip

    made.sink("couriers", "by_courier", couriers)


def _windowed(frame: Any, text: str, days: int) -> Any:
    timed = frame.withWatermark("at", "1 hour")
    return timed.sparkSession.sql(text.replace("{days}", str(days)), timed=timed)
