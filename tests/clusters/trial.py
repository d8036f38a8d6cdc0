"""What every cluster manager has to go through; after each step the rows equal a batch's.

    attached(manager, directory)    a plain query: out, moves, and in again; an executor, a node
                                    and the driver killed -9
    topology(manager, directory)    ours under `promise`: out, an executor and the driver killed -9
    fewer(manager, directory, n)    a plain query on a cluster that has room for n executors only
    doctor(manager, directory)      `penstock doctor` there: what works, actuator by actuator

Each returns what it took, in seconds, to be printed. `Followed` is for what else a cluster may go
through.
"""

import json
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Self

import penstock
from clusters import attached_program, topology_program
from clusters.driver import Driver, driver_environment
from clusters.feeding import Feeder, written
from clusters.manager import Manager, executor_processes, kill_executor
from spark.recomputed import compare

LEAST, MOST = 1, 3
ROW_S = 0.015
BUSY_PER_S, CALM_PER_S = 100.0, 8.0  # what needs two executors and more, and what needs one
SETTLE_LIMIT_S = 900.0

PLAIN = {
    "spark.sql.shuffle.partitions": str(attached_program.GROUPS),
    # Files of a batch are listed in the driver, and not by a task for each of them.
    "spark.sql.sources.parallelPartitionDiscovery.threshold": "10000",
    "spark.executor.memory": "512m",
    "spark.driver.memory": "768m",
    "spark.executor.extraJavaOptions": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1",
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
    ),
}
OPTIONS: Mapping[str, Any] = {
    "row_s": ROW_S, "max_latency": "20s", "executors": (LEAST, MOST), "period_s": 2.0,
    "cooldown_out_s": 2.0, "cooldown_in_s": 2.0,
    # The policy that forgets soonest: here the cluster is on trial, and not how a load is foreseen.
    "policy": "ds2", "policy_options": {"scale_down_window_s": 4.0},
    "scale_down_window_s": "off", "catch_up_s": "off",
    # The little state of this query is too little to be worth a move, unless it is told otherwise.
    "allocation_tolerance": 0.0,
}  # fmt: skip


Part = Callable[[Manager, Path], dict[str, float]]


def tell(manager: Manager, part: Part, took: Mapping[str, float]) -> None:
    """Print what a part took; pytest shows it with -s, or where it is asked for what passed."""
    said = ", ".join(f"{what} {seconds:.1f} s" for what, seconds in took.items())
    print(f"\n{manager.name}, {part.__name__}: {said}")


class Followed:
    """A plain query that is fed and has a controller attached, on a cluster."""

    def __init__(
        self, manager: Manager, directory: Path, options: Mapping[str, Any] | None = None,
        settings: Mapping[str, str] | None = None,
    ) -> None:  # fmt: skip
        """`options` of attach and `settings` of Spark are added to those of the trial."""
        self.manager, self.directory = manager, directory
        self.feeder = Feeder(directory / "in")
        chosen = {**OPTIONS, **(options or {})}
        (directory / "options.json").write_text(json.dumps(chosen))
        self._settings = {
            **PLAIN, **penstock.session_settings(executors=chosen["executors"]),
            **manager.settings, **(settings or {}),
        }  # fmt: skip
        self.start()

    def start(self) -> None:
        """A driver, the first or another after the last was killed."""
        self.driver = Driver(attached_program, self.directory, self.manager, self._settings)

    def until_results(self) -> None:
        """Until some more batches have ended."""
        seen = self._batches()
        self.driver.until("more batches", lambda: self._batches() > seen + 1)

    def settle(self) -> float:
        """No more rows: wait until those written are counted, and compare with a batch."""
        rows = self.feeder.pause()
        took_s = self.driver.until(
            f"all {rows} rows", lambda: written(self._out)["n"].sum() >= rows, SETTLE_LIMIT_S
        )
        found, expected = written(self._out), self.feeder.expected()
        assert found.to_dict("list") == expected.to_dict("list")
        return took_s

    @property
    def _out(self) -> Path:
        return self.directory / "out"

    def _batches(self) -> int:
        return len(list(self._out.glob("*.parquet")))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        try:
            if kind is None:
                (self.directory / "end").touch()
                self.driver.until("its end", lambda: self.driver.ended)
        finally:
            self.feeder.stop()
            self.driver.end(60 if self.driver.ended else 0)


def attached(manager: Manager, directory: Path) -> dict[str, float]:
    """A plain query is followed out and in; an executor, a node and the driver are killed -9."""
    took: dict[str, float] = {}
    with Followed(manager, directory) as run:
        driver = run.driver
        took["first executor"] = driver.until("the first executor", lambda: driver.executors)
        run.feeder.rate_per_s = BUSY_PER_S
        took["out"] = driver.until("more executors", lambda: len(driver.executors) >= 2)
        driver.until(
            "key groups on several executors",
            lambda: len(set(driver.homes.values()) & set(driver.executors)) >= 2,
        )
        took |= _without_an_executor(run)

        run.feeder.rate_per_s = CALM_PER_S
        took["in"] = driver.until("executors given back", lambda: len(driver.executors) == LEAST)
        driver.until(
            "their processes to end", lambda: len(executor_processes(driver.application)) == LEAST
        )
        assert any(act["done"] and "drained" in act["detail"] for act in driver.acts), driver.acts
        assert any(move["done"] and move["groups"] for move in driver.moves), driver.moves

        took |= _without_a_node(run)
        run.feeder.rate_per_s = CALM_PER_S
        run.until_results()
        driver.kill()
        run.start()
        took["driver back"] = run.driver.until("executors again", lambda: run.driver.executors)
        took["rows equal after the driver"] = run.settle()
    return took


def _without_an_executor(run: Followed) -> dict[str, float]:
    """Kill one under load."""
    driver = run.driver
    victim = sorted(driver.executors)[-1]
    kill_executor(driver.application, victim)
    gone_s = driver.until("the killed executor to leave", lambda: victim not in driver.executors)
    driver.until("another in its place", lambda: len(driver.executors) >= 2)
    return {"killed executor gone": gone_s, "rows equal after an executor": run.settle()}


def _without_a_node(run: Followed) -> dict[str, float]:
    """Kill under load what starts executors on one of the hosts; it comes back in the end."""
    driver = run.driver
    run.feeder.rate_per_s = BUSY_PER_S
    driver.until("two executors", lambda: len(driver.executors) >= 2)
    host = driver.executors[sorted(driver.executors)[-1]]
    run.manager.kill_node(host)
    run.until_results()
    took_s = run.settle()
    run.manager.revive_node(host)
    return {"rows equal after a node": took_s}


def fewer(manager: Manager, directory: Path, room: int) -> dict[str, float]:
    """More executors are wanted than there is room for: said, not asked for again and again."""
    took: dict[str, float] = {}
    with Followed(manager, directory, {"executors": (1, room + 2), "max_latency": "5s"}) as run:
        driver = run.driver
        driver.until("the first executor", lambda: driver.executors)
        run.feeder.rate_per_s = 2 * BUSY_PER_S
        took["room filled"] = driver.until("all it has", lambda: len(driver.executors) == room)
        took["said"] = driver.until("a word on it", lambda: _refused(driver, "gave"))
        driver.until("no more requests", lambda: _refused(driver, "more are asked for again in"))
        took["rows equal"] = run.settle()
    return took


def _refused(driver: Driver, words: str) -> bool:
    return any(not act["done"] and words in act["detail"] for act in driver.acts)


def topology(manager: Manager, directory: Path) -> dict[str, float]:
    """A topology of ours goes out under `promise` and loses an executor and its driver."""
    took: dict[str, float] = {}

    def start(row_s: float) -> Driver:
        asked = {"master": manager.settings["spark.master"], "row_s": row_s}
        (directory / "topology.json").write_text(json.dumps(asked))
        return Driver(topology_program, directory, manager)

    driver = start(topology_program.ROW_S)
    try:
        took["first batch"] = driver.until("a batch", lambda: driver.batches)
        took["out"] = driver.until("more executors", lambda: len(driver.executors) >= 2)
        kill_executor(driver.application, sorted(driver.executors)[0])
        seen = driver.batches
        took["two batches after the kill"] = driver.until(
            "batches after the kill", lambda: driver.batches > seen + 1
        )
        assert not driver.ended, "the stream was worked off before the driver could be killed"
        driver.kill()
        driver = start(topology_program.LAST_ROW_S)
        began_s = time.monotonic()
        driver.until("the end of the stream", lambda: driver.ended, SETTLE_LIMIT_S)
        took["worked off after the driver"] = time.monotonic() - began_s
    finally:
        driver.end(60 if driver.ended else 0)
    compare(directory, topology_program.STREAM, topology_program.WATERMARK_S)
    return took


def doctor(manager: Manager, directory: Path) -> str:
    """Both actuators work there, and executors have the driver's Python; where one came."""
    words = ["-m", "penstock", "doctor", "--master", manager.settings["spark.master"], "--json"]
    done = subprocess.run(
        [*manager.inside, sys.executable, *words], env=driver_environment(directory, manager),
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.stdout, done.stderr
    found = {one["name"]: one for one in json.loads(done.stdout)}
    assert found["act: the number of executors"]["found"] == "works", found
    assert found["act: where state lives"]["found"] == "works", found
    assert found["python of executors"]["ok"], found
    came: str = found["executor"]["found"]
    assert came.startswith("came on "), found
    return came.removeprefix("came on ")
