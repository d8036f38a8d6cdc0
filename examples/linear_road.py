"""Linear road, after Guo and Zhou 2017, s. 6.3: one gadget, and a network of three.

penstock run examples/linear_road.py:road --explain --plan examples/linear_road_plan.json

A gadget is an expressway between two vertices of a road network. The paper counts seven operators
with source and sink, and adds the traffic operator; figures 1 and 6 give the keys:

| operator  | does                                            | key                         |
|-----------|-------------------------------------------------|-----------------------------|
| positions | reads the reports of vehicles                   |                             |
| speeds    | speed of each vehicle in each segment           | vehicle, direction, segment |
| segments  | mean speed and number of vehicles of a segment  | direction, segment          |
| accidents | reports of standing vehicles in a segment       | direction, segment          |
| tolls     | what a segment costs, by its speed and volume   | direction, segment          |
| traffic   | vehicles that pass between vertices, by minute  | vehicle                     |

In a network the traffic of an expressway also counts what comes from the expressways that end
where it begins. The paper does not say how routes are tracked; here by vehicle.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from penstock import Files, Generator, InvalidInput, Topology, steps
from penstock.model.sinks import Sink

SEGMENTS = 100
KEYS: dict[str, tuple[str, ...]] = {
    "positions": (),
    "speeds": ("vehicle", "direction", "segment"),
    "segments": ("direction", "segment"),
    "accidents": ("direction", "segment"),
    "tolls": ("direction", "segment"),
    "traffic": ("vehicle",),
}
STREAMS = (
    ("positions", "speeds"), ("speeds", "segments"), ("segments", "tolls"),
    ("positions", "accidents"), ("positions", "traffic"),
)  # fmt: skip

POSITIONS = f"""
    SELECT key AS vehicle, key % 2 AS direction,
           (key * 7 + CAST(unix_timestamp(at) AS BIGINT) DIV 10) % {SEGMENTS} AS segment,
           CASE WHEN key % 97 = 0 THEN 0.0 ELSE 40.0 + 80.0 * value END AS speed, at
    FROM {{reports}}
"""
SPEEDS = """
    SELECT vehicle, direction, segment, window, avg(speed) AS speed FROM {timed}
    GROUP BY vehicle, direction, segment, window(at, '{window}')
"""
SEGMENT_STATES = """
    SELECT direction, segment, window(window, '{window}') AS window, count(*) AS volume,
           avg(speed) AS speed
    FROM {speeds} GROUP BY direction, segment, window(window, '{window}')
"""
ACCIDENTS = """
    SELECT direction, segment, window, count(*) AS standing FROM {timed} WHERE speed = 0
    GROUP BY direction, segment, window(at, '{window}')
"""
TOLLS = """
    SELECT direction, segment, window(window, '{window}').start AS since, sum(volume) AS volume,
           CASE WHEN avg(speed) < 75 THEN 2 * pow(greatest(sum(volume) - 3, 0), 2) ELSE 0 END
               AS toll
    FROM {segments} GROUP BY direction, segment, window(window, '{window}')
"""
TRAFFIC = """
    SELECT vehicle, window.start AS minute, window.end - INTERVAL 1 MICROSECOND AS at,
           sum(passed) AS passed
    FROM {passing} GROUP BY vehicle, window(at, '{window}')
"""


@dataclass(frozen=True)
class Expressway:
    """One gadget: where it runs from and to, and the stream of reports on it."""

    name: str
    start: str
    end: str
    reports: Generator


@dataclass(frozen=True)
class Windows:
    """How long a window of tolls and of traffic is, and how late a report may come."""

    tolls: str = "5 seconds"
    traffic: str = "1 minute"
    watermark: str = "1 second"


def linear_road(
    reports: Generator, tolls: Sink, accidents: Sink, traffic: Sink | None = None, *,
    max_latency: str = "5s", windows: Windows = Windows(),
) -> Topology:  # fmt: skip
    """One gadget; without a sink for traffic, that operator is left out."""
    road = Topology("linear-road", max_latency=max_latency)
    one = Expressway("", "a", "b", reports)
    sinks = {"tolls": tolls, "accidents": accidents}
    sinks |= {"traffic": traffic} if traffic is not None else {}
    _add_gadget(road, one, [], sinks, windows)
    return road


def road_network(
    roads: Sequence[Expressway], sinks: Callable[[str], Sink], *, max_latency: str = "10s",
    windows: Windows = Windows(),
) -> Topology:  # fmt: skip
    """Gadgets joined where one expressway begins and another ends; the first leads nowhere back.

    Roads are given so that each comes after those that end where it begins: a query has no loops.
    `sinks` gives the sink for a name such as `north_tolls`.
    """
    network = Topology("road-network", max_latency=max_latency)
    done: list[Expressway] = []
    for road in roads:
        if not road.name.isidentifier():
            raise InvalidInput(f"Expressway(name) is {road.name!r}; it must be an identifier.")
        above = [other for other in done if other.end == road.start]
        own = {kind: sinks(f"{road.name}_{kind}") for kind in ("tolls", "accidents", "traffic")}
        _add_gadget(network, road, above, own, windows)
        done.append(road)
    return network


def _add_gadget(
    topology: Topology, road: Expressway, above: list[Expressway], sinks: dict[str, Sink],
    windows: Windows,
) -> None:  # fmt: skip
    def named(operator: str, of: Expressway = road) -> str:
        return f"{of.name}_{operator}" if of.name else operator

    def timed(frame: Any) -> Any:
        return frame.withWatermark("at", windows.watermark)

    topology.source(named("reports"), road.reports)
    topology.add(
        named("positions"), lambda reports: _sql(POSITIONS, reports=reports), named("reports")
    )
    topology.add(
        named("speeds"),
        lambda positions: _sql(SPEEDS, windows.tolls, timed=timed(positions)),
        named("positions"), key=["vehicle", "direction", "segment"],
    )  # fmt: skip
    topology.add(
        named("segments"), lambda speeds: _sql(SEGMENT_STATES, windows.tolls, speeds=speeds),
        named("speeds"), key=["direction", "segment"],
    )  # fmt: skip
    topology.add(
        named("accidents"),
        lambda positions: _sql(ACCIDENTS, windows.tolls, timed=timed(positions)),
        named("positions"), key=["direction", "segment"],
    )  # fmt: skip
    topology.add(
        named("tolls"), lambda segments: _sql(TOLLS, windows.tolls, segments=segments),
        named("segments"), key=["direction", "segment"],
    )  # fmt: skip
    topology.sink(named("tolls_out"), named("tolls"), sinks["tolls"])
    topology.sink(named("accidents_out"), named("accidents"), sinks["accidents"])
    if "traffic" in sinks:

        def passing(positions: Any, *incoming: Any) -> Any:
            rows = timed(positions).selectExpr("vehicle", "at", "1L AS passed")
            for other in incoming:
                rows = rows.unionByName(other.selectExpr("vehicle", "at", "passed"))
            return _sql(TRAFFIC, windows.traffic, passing=rows)

        upstreams = [named("positions"), *(named("traffic", other) for other in above)]
        topology.add(named("traffic"), passing, upstreams, key="vehicle")
        topology.sink(named("traffic_out"), named("traffic"), sinks["traffic"])


def _sql(text: str, window: str = "", **frames: Any) -> Any:
    session = next(iter(frames.values())).sparkSession
    return session.sql(text.replace("{window}", window), **frames)


REPORTS = Generator(steps([(10, 500), (10, 2_000)]), keys=2_000, rows=20_000)

road = linear_road(
    REPORTS,
    Files("out/tolls", overwrite=True),
    Files("out/accidents", overwrite=True),
    Files("out/traffic", overwrite=True),
)
network = road_network(
    [
        Expressway("north", "a", "b", REPORTS),
        Expressway("east", "b", "c", REPORTS),
        Expressway("south", "b", "d", REPORTS),
    ],
    lambda name: Files(f"out/{name}", overwrite=True),
)
