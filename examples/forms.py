"""Three forms of one step that answer alike: the loop tries each and keeps to the cheapest.

penstock run examples/forms.py --for 2m
penstock history --show elsewhere --show actions
"""

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from penstock import Files, Generator, Topology, constant

ZONES = [(low / 200, (low + 1) / 200, f"zone {low}") for low in range(200)]
SCHEMA = "key BIGINT, value DOUBLE, zone STRING"

road = Topology("zones", max_latency="5s")
road.source("reports", Generator(constant(2_000), keys=50, rows=400_000))


def _named(batch: Any, zones: Any) -> Any:
    return pa.RecordBatch.from_arrays(
        [batch.column("key"), batch.column("value"), zones], names=["key", "value", "zone"]
    )


def scan(batches: Iterator[Any]) -> Iterator[Any]:
    """Every zone is looked at for every row."""
    for batch in batches:
        values = batch.column("value").to_pylist()
        found = [next(n for low, high, n in ZONES if low <= v < high) for v in values]
        yield _named(batch, pa.array(found))


def with_index(batches: Iterator[Any]) -> Iterator[Any]:
    """The zone's place in a list, row by row."""
    for batch in batches:
        values = batch.column("value").to_pylist()
        yield _named(batch, pa.array([ZONES[int(200 * v)][2] for v in values]))


def vectorised(batches: Iterator[Any]) -> Iterator[Any]:
    """The same for all rows of a pack at once."""
    names = pa.array([name for _, _, name in ZONES])
    for batch in batches:
        places = pc.floor(pc.multiply(batch.column("value"), 200.0)).cast(pa.int32())
        yield _named(batch, names.take(places))


road.add(
    "zoned",
    lambda reports: reports.mapInArrow(scan, SCHEMA),
    "reports",
    forms={
        "index": lambda reports: reports.mapInArrow(with_index, SCHEMA),
        "vectorised": lambda reports: reports.mapInArrow(vectorised, SCHEMA),
    },
)
road.sink("out", "zoned", Files("out/zones", overwrite=True))

if __name__ == "__main__":
    print(road.run())
