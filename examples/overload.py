"""More load for a while than there are processors for, and what is left to do about it.

penstock run examples/overload.py --shed-at-most 0.3 --resort-after 5s --resort-undo-after 10s
penstock history --show elsewhere --show actions
"""

import time
from collections.abc import Iterator
from typing import Any

from penstock import Files, Generator, Topology, steps

road = Topology("overload", max_latency="5s")
road.source(
    "reports",
    Generator(steps([(15, 100), (40, 1_000), (30, 100)]), keys=50, rows=44_500, max_rows=2_000),
)


def look_up(seconds: float) -> Any:
    """Ask somewhere else for each row, which takes a while."""

    def ask(batches: Iterator[Any]) -> Iterator[Any]:
        for batch in batches:
            time.sleep(seconds * batch.num_rows)
            yield batch

    return lambda reports: reports.mapInArrow(ask, reports.schema)


road.add("known", look_up(0.004), "reports", cheaper=look_up(0.002))
road.add("timed", lambda known: known.withWatermark("at", "1 second"), "known")
road.add(
    "means",
    "SELECT key, window.start AS since, avg(value) AS mean, count(*) AS n FROM timed "
    "GROUP BY key, window(at, '5 seconds')",
    "timed",
)
road.sink("out", "means", Files("out/means", overwrite=True))

if __name__ == "__main__":
    print(road.run(shed_at_most=0.3, resort_after_s=5.0, resort_undo_after_s=10.0))
