"""Sliding windows over routed rows, a program that a test can kill: DIRECTORY MASTER ROWS [once].

A new table of routes for every batch: the rows of a hot key are in other tasks each time, and their
partial results meet in the state of window_aggregate. Prints a line after each batch.
"""

import sys
from pathlib import Path
from typing import Any

from penstock import UserAggregate, window_aggregate
from penstock.config import Settings
from penstock.model.route import Route
from penstock.model.sinks import Files
from penstock.model.topology import Topology
from penstock.spark.run.elastic import ElasticRun
from penstock.spark.run.place import Place
from penstock.workloads.generator import Generator
from penstock.workloads.profiles import constant

ROUTE = Route("frequency-aware", key="key", partitions=2, period="1ms")

SPAN = UserAggregate(
    columns=["row"],
    state="low BIGINT, high BIGINT",
    returns="BIGINT",
    init=lambda: {"low": None, "high": None},
    update=lambda state, rows: _wider(state, rows["row"].to_pylist()),
    merge=lambda left, right: _wider(left, [right["low"], right["high"]]),
    result=lambda state: state["high"] - state["low"],
)


def _wider(state: dict[str, Any], values: list[Any]) -> dict[str, Any]:
    known = [value for value in (*state.values(), *values) if value is not None]
    return {"low": min(known), "high": max(known)}


def stream(rows: int) -> Generator:
    """So many rows, 900 a batch."""
    return Generator(constant(3_000.0), keys=30, skew=1.5, seed=5, rows=rows, lanes=2, max_rows=900)


def topology(directory: Path, rows: int) -> Topology:
    """Counts, sums, maxima and spans for each key in windows of a second, ten a second."""
    made = Topology("windowed", max_latency="10s")
    made.source("rows", stream(rows), route=ROUTE)

    @made.operator("rows")
    def sliding(rows: Any) -> Any:
        return window_aggregate(
            rows.withWatermark("at", "1 second"), by="key", window="1s", slide="100ms",
            aggregates={"n": "count", "total": "sum(row)", "most": "max(value)", "span": SPAN},
        )  # fmt: skip

    made.sink("out", "sliding", Files(str(directory / "out")))
    return made


def main(directory: Path, master: str, rows: int, once: bool) -> None:
    """Run until killed, or until all rows are worked off."""
    settings = Settings(
        period_s=2.0, policy="static", executors_min=2, executors_max=2, slots=1, key_groups=2,
        executor_memory_mb=512, history=str(directory / "history.sqlite"),
    )  # fmt: skip
    place = Place(master, directory / "checkpoint", directory / "spark.log", once=once)
    with ElasticRun(topology(directory, rows), settings, place) as run:
        run.running.after_batch.append(lambda _, batch: print("batch", batch, flush=True))
        if not run.wait(200):
            raise SystemExit("the stream was not worked off in time")
    print("finished", flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), sys.argv[4:] == ["once"])
