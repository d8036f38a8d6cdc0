"""A toll road, after the linear-road idea of Guo and Zhou 2017: what the demo runs.

Vehicles report their position; each report waits for a slow look-up of the vehicle's account; from
there the road learns the speed and volume of each segment, its toll, and where accidents are.
Operators are plain functions of DataFrames and SQL text, as a user would write them.
"""

from typing import Any

from penstock.model.route import Route
from penstock.model.sinks import Sink
from penstock.model.sources import Streams
from penstock.model.topology import Topology
from penstock.workloads.generator import Generator
from penstock.workloads.slow_lookup import Lookup

SEGMENTS = 20
LOOKUP_SCHEMA = (
    "vehicle BIGINT, direction BIGINT, segment BIGINT, speed DOUBLE, account BIGINT, at TIMESTAMP"
)

POSITIONS = f"""
    SELECT key AS vehicle,
           key % 2 AS direction,
           (key * 7 + CAST(unix_timestamp(at) AS BIGINT) DIV 10) % {SEGMENTS} AS segment,
           CASE WHEN key % 97 = 41 THEN 0.0 ELSE 40.0 + 80.0 * value END AS speed,
           at
    FROM reports
"""

SPEEDS = """
    SELECT direction, segment, vehicle, window, avg(speed) AS speed
    FROM {timed}
    GROUP BY direction, segment, vehicle, window(at, '5 seconds')
"""

TOLLS = """
    SELECT direction, segment, window(window, '5 seconds').start AS since,
           count(*) AS volume,
           avg(speed) AS speed,
           CASE WHEN avg(speed) < 75 THEN 2 * pow(greatest(count(*) - 3, 0), 2) ELSE 0 END AS toll
    FROM speeds
    GROUP BY direction, segment, window(window, '5 seconds')
"""


STANDING = """
    SELECT direction, segment, window.start AS since, count(*) AS reports
    FROM {timed}
    GROUP BY direction, segment, window(at, '5 seconds')
    HAVING count(*) >= 2
"""


def toll_road(
    reports: Generator | Streams,
    tolls: Sink,
    accidents: Sink,
    *,
    max_latency: str = "5s",
    route: Route | None = None,
    lookup_wait_s: float = 0.004,
) -> Topology:
    """The topology: reports -> positions -> accounts -> speeds -> tolls, and accounts -> standing.

    Two reports of standing vehicles in one segment within five seconds are an accident.
    """
    road = Topology("toll-road", max_latency=max_latency)
    road.source("reports", reports, route=route)
    road.add("positions", POSITIONS, upstream="reports")

    @road.operator("positions")
    def accounts(positions: Any) -> Any:
        return positions.mapInArrow(Lookup(lookup_wait_s), LOOKUP_SCHEMA)

    @road.operator("accounts", key=["direction", "segment"])
    def speeds(accounts: Any) -> Any:
        return _sql(SPEEDS, accounts.withWatermark("at", "1 second"))

    road.add("tolls", TOLLS, upstream="speeds", key=["direction", "segment"])

    @road.operator("accounts", key=["direction", "segment"])
    def standing(accounts: Any) -> Any:
        return _sql(STANDING, accounts.where("speed = 0").withWatermark("at", "1 second"))

    road.sink("tolls_out", "tolls", tolls)
    road.sink("accidents_out", "standing", accidents)
    return road


def _sql(text: str, timed: Any) -> Any:
    return timed.sparkSession.sql(text, timed=timed)
