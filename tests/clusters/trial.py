"""What every cluster manager has to go through; after each step the rows equal a batch's.

    attached(manager, directory)    a plain query: out, moves, a killed executor, and in again
    killed(manager, directory)      a plain query: an executor, a node and the driver killed -9
    topology(manager, directory)    ours under `promise`: out, an executor and the driver killed -9

Each returns what it took, in seconds, to be printed.
"""

import json
import random
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import penstock
from clusters import attached_program, topology_program
from clusters.driver import Driver
from clusters.feeding import Feeder, written
from clusters.manager import Manager, executor_processes, kill_executor
from spark.recomputed import compare

LEAST, MOST = 1, 3
ROW_S = 0.005
BUSY_PER_S, CALM_PER_S = 320.0, 12.0  # what needs two executors and more, and what needs one
SETTLE_LIMIT_S = 300.0

PLAIN = {
    "spark.sql.shuffle.partitions": str(attached_program.GROUPS),
    "spark.executor.memory": "512m",
    "spark.driver.memory": "768m",
    "spark.executor.extraJavaOptions": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1",
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
    ),
}
OPTIONS: Mapping[str, Any] = {
    "row_s": ROW_S, "max_latency": "8s", "executors": (LEAST, MOST), "period_s": 2.0,
    "cooldown_out_s": 2.0, "cooldown_in_s": 2.0, "allocation_tolerance": 0.0,
}  # fmt: skip


Part = Callable[[Manager, Path], dict[str, float]]


def tell(manager: Manager, part: Part, took: Mapping[str, float]) -> None:
    """Print what a part took; pytest shows it with -s, or where it is asked for what passed."""
    said = ", ".join(f"{what} {seconds:.1f} s" for what, seconds in took.items())
    print(f"\n{manager.name}, {part.__name__}: {said}")


def attached(manager: Manager, directory: Path) -> dict[str, float]:
    """A plain query is followed out and in; key groups move; an executor is killed meanwhile."""
    took: dict[str, float] = {}
    with _fed(directory) as feeder:
        driver = _start(manager, directory)
        try:
            took["first executor"] = driver.until("the first executor", lambda: driver.executors)
            feeder.rate_per_s = BUSY_PER_S
            took["out"] = driver.until("more executors", lambda: len(driver.executors) >= 2)
            _until_spread(driver)
            victim = sorted(driver.executors)[-1]
            kill_executor(driver.application, victim)
            took["killed executor gone"] = driver.until(
                "the killed executor to leave", lambda: victim not in driver.executors
            )
            driver.until("another in its place", lambda: len(driver.executors) >= 2)
            took["rows equal after a killed executor"] = _settle(driver, feeder, directory)

            feeder.rate_per_s = CALM_PER_S
            took["in"] = driver.until(
                "executors to be given back", lambda: len(driver.executors) == LEAST
            )
            driver.until(
                "their processes to end",
                lambda: len(executor_processes(driver.application)) == LEAST,
            )
            assert any(act["done"] and "drained" in act["detail"] for act in driver.acts), (
                driver.acts
            )
            assert any(move["done"] and move["groups"] for move in driver.moves), driver.moves
            took["rows equal after coming in"] = _settle(driver, feeder, directory)
            _end(driver, directory)
        finally:
            driver.end(0 if driver.process.poll() is None and not driver.ended else 60)
    return took


def killed(manager: Manager, directory: Path) -> dict[str, float]:
    """An executor, a node with what runs there, and the driver: kill -9, under load."""
    took: dict[str, float] = {}
    options = {**OPTIONS, "executors": (2, MOST)}
    with _fed(directory) as feeder:
        driver = _start(manager, directory, options)
        try:
            driver.until("two executors", lambda: len(driver.executors) >= 2)
            feeder.rate_per_s = BUSY_PER_S / 2
            driver.until("results", lambda: len(written(directory / "out")) > 0)
            kill_executor(driver.application, random.choice(sorted(driver.executors)))
            took["rows equal after an executor"] = _settle(driver, feeder, directory)

            driver.until("two executors", lambda: len(driver.executors) >= 2)
            feeder.rate_per_s = BUSY_PER_S / 2
            host = driver.executors[sorted(driver.executors)[-1]]
            manager.kill_node(host)
            took["rows equal after a node"] = _settle(driver, feeder, directory)
            manager.revive_node(host)

            feeder.rate_per_s = BUSY_PER_S / 2
            seen = len(list((directory / "out").glob("*.parquet")))
            driver.until(
                "more batches", lambda: len(list((directory / "out").glob("*.parquet"))) > seen + 1
            )
            driver.kill()
            driver = _start(manager, directory, options)
            took["driver back"] = driver.until("executors again", lambda: driver.executors)
            took["rows equal after the driver"] = _settle(driver, feeder, directory)
            _end(driver, directory)
        finally:
            driver.end(0 if driver.process.poll() is None and not driver.ended else 60)
    return took


def topology(manager: Manager, directory: Path) -> dict[str, float]:
    """A topology of ours goes out under `promise` and loses an executor and its driver."""
    took: dict[str, float] = {}
    (directory / "master.txt").write_text(manager.settings["spark.master"])
    driver = Driver(topology_program, directory, manager)
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
        driver = Driver(topology_program, directory, manager)
        began_s = time.monotonic()
        driver.until("the end of the stream", lambda: driver.ended, SETTLE_LIMIT_S)
        took["worked off after the driver"] = time.monotonic() - began_s
    finally:
        driver.end(60 if driver.ended else 0)
    compare(directory, topology_program.STREAM, topology_program.WATERMARK_S)
    return took


@contextmanager
def _fed(directory: Path) -> Iterator[Feeder]:
    feeder = Feeder(directory / "in")
    try:
        yield feeder
    finally:
        feeder.stop()


def _start(manager: Manager, directory: Path, options: Mapping[str, Any] = OPTIONS) -> Driver:
    (directory / "options.json").write_text(json.dumps(options))
    settings = {
        **PLAIN, **penstock.session_settings(executors=tuple(options["executors"])),
        **manager.settings,
    }  # fmt: skip
    return Driver(attached_program, directory, manager, settings)


def _until_spread(driver: Driver) -> None:
    """Until key groups live on more executors than one."""
    driver.until(
        "key groups on several executors",
        lambda: len(set(driver.homes.values()) & set(driver.executors)) >= 2,
    )


def _settle(driver: Driver, feeder: Feeder, directory: Path) -> float:
    """No more rows; wait until those written are counted, and compare with a batch over them."""
    rows = feeder.pause()
    took_s = driver.until(
        f"all {rows} rows",
        lambda: written(directory / "out")["n"].sum() >= rows,
        SETTLE_LIMIT_S,
    )
    found, expected = written(directory / "out"), feeder.expected()
    assert found.to_dict("list") == expected.to_dict("list")
    return took_s


def _end(driver: Driver, directory: Path) -> None:
    (directory / "end").touch()
    driver.until("its end", lambda: driver.ended, 90)
