"""What is killed: DIRECTORY MASTER SEED LENGTH_S [once]. Every decision of Penstock is at work.

Prints a line after each batch. SIGUSR1 kills the loop's thread. With `once` it works off what is
left and ends.
"""

import ctypes
import logging
import signal
import sys
import threading
from pathlib import Path
from typing import Any

from penstock.config import Settings
from penstock.control.controller import THREAD
from penstock.model.plan_document import Group
from penstock.model.route import Route
from penstock.model.sinks import Files
from penstock.model.topology import Topology
from penstock.spark.run.elastic import ElasticRun
from penstock.spark.run.place import Place
from penstock.workloads.generator import Generator
from soak import load

WATERMARK_S, WINDOW_S = 1, 2
LENGTH_LIMIT_S = 7200.0
PLAN = (Group(("by_key", "by_window"), ("bucket",)),)


def topology(directory: Path, made: dict[str, Generator]) -> Topology:
    """Rows as they are, and two chained aggregations that share a component."""
    road = Topology("soaked", max_latency="10s")
    declared = directory / "streams.toml"
    declared.write_text(load.declaration(made), encoding="utf-8")
    route = Route("frequency-aware", key="key", partitions=4, top_k=10, period="4s", follow=True)
    road.source("rows", load.source(made, str(declared)), route=route)
    road.add("placed", "SELECT *, key % 8 AS bucket FROM rows", upstream="rows")

    @road.operator("placed", key=["bucket"])
    def by_key(placed: Any) -> Any:
        timed = placed.withWatermark("at", f"{WATERMARK_S} seconds")
        text = f"""SELECT bucket, key, window, count(*) AS n, sum(row) AS total FROM {{timed}}
                   GROUP BY bucket, key, window(at, '{WINDOW_S} seconds')"""
        return timed.sparkSession.sql(text, timed=timed)

    road.add(
        "by_window",
        f"""SELECT bucket, window(window, '{WINDOW_S} seconds').start AS since, sum(n) AS n,
                   count(*) AS keys, sum(total) AS total
            FROM by_key GROUP BY bucket, window(window, '{WINDOW_S} seconds')""",
        upstream="by_key",
        key=["bucket"],
    )
    road.sink("raw", "placed", Files(str(directory / "raw")))
    road.sink("windows", "by_window", Files(str(directory / "windows")))
    return road


def settings(directory: Path) -> Settings:
    """Restless on purpose: executors and key groups are to change as often as they may."""
    return Settings(
        period_s=2.0, policy="incremental", executors_min=1, executors_max=3, slots=1,
        key_groups=2, executor_memory_mb=512, history=str(directory / "history.sqlite"),
        cooldown_out_s=4.0, cooldown_in_s=8.0, policy_options={"min_ratio": 0.2, "max_ratio": 0.35},
        allocation="milp", allocation_tolerance=0.0,
    )  # fmt: skip


def kill_loop(*_: object) -> None:
    """End the loop's thread as if it had met something nobody foresaw."""
    for thread in threading.enumerate():
        if thread.name == THREAD and thread.ident is not None:
            ctypes.pythonapi.PyThreadState_SetAsyncExc(
                ctypes.c_ulong(thread.ident), ctypes.py_object(SystemExit)
            )


def main(directory: Path, master: str, seed: int, length_s: float, once: bool) -> None:
    """Run until killed, or until all rows are worked off."""
    logging.basicConfig(level=logging.WARNING)
    signal.signal(signal.SIGUSR1, kill_loop)
    made = load.streams(seed, length_s)
    place = Place(master, directory / "checkpoint", directory / "spark.log", once=once, plan=PLAN)
    with ElasticRun(topology(directory, made), settings(directory), place) as run:
        run.running.after_batch.append(lambda _, batch: print("batch", batch, flush=True))
        if not run.wait(LENGTH_LIMIT_S):
            raise SystemExit("the streams were not worked off in time")
    print("finished", flush=True)


if __name__ == "__main__":
    main(
        Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), float(sys.argv[4]),
        sys.argv[5:] == ["once"],
    )  # fmt: skip
