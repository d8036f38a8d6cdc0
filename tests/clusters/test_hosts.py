"""The trial on several hosts, and what only happens between hosts: `make test-hosts`."""

import json
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import penstock
from clusters import hadoop, hosts, object_store, state_program, trial
from clusters.driver import Driver
from clusters.hosts import DRIVER, Hosts
from clusters.manager import Manager
from clusters.trial import CALM_PER_S, Followed

MISSING = hosts.missing()
pytestmark = [pytest.mark.spark, pytest.mark.skipif(MISSING is not None, reason=str(MISSING))]

CUT_S = 60.0
ALL = {"executors": (3, 3)}
# Spark takes a host that says nothing for lost after two minutes, unless told otherwise.
SOONER = {
    "spark.network.timeout": "30s",
    "spark.network.timeoutInterval": "10s",
    "spark.executor.heartbeatInterval": "5s",
}
LOAD_PER_S = 5 * CALM_PER_S


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Manager, Hosts]]:
    with hosts.cluster_of_hosts(tmp_path_factory.mktemp("hosts")) as running:
        print("\npackets are delayed" if running[1].delayed else "\nno delay: no netem here")
        yield running


@pytest.mark.parametrize("part", [trial.attached, trial.topology])
def test_the_trial(cluster: tuple[Manager, Hosts], tmp_path: Path, part: trial.Part) -> None:
    manager, _ = cluster
    trial.tell(manager, part, part(manager, tmp_path))


def test_the_doctor_says_what_works(cluster: tuple[Manager, Hosts], tmp_path: Path) -> None:
    assert trial.doctor(cluster[0], tmp_path) in hosts.WORKERS


def test_the_driver_cut_off_from_one_worker(cluster: tuple[Manager, Hosts], tmp_path: Path) -> None:
    manager, network = cluster
    with Followed(manager, tmp_path, ALL, SOONER) as run:
        host = spread_over_three(run)
        network.part(DRIVER, host)
        try:
            gone_s = run.driver.until(
                "its executor to be given up", lambda: host not in run.driver.executors.values()
            )
            run.until_results()
            took_s = run.settle()
        finally:
            network.join(DRIVER, host)
    print(
        f"\nhosts: a worker the driver cannot reach is given up after {gone_s:.1f} s; rows equal "
        f"{took_s:.1f} s after the last"
    )


STATE_ROWS, BODY_BYTES = 50_000, 1_000  # 50 MB that cannot be compressed
STATE = {
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    "spark.sql.streaming.stateStore.maintenanceInterval": "3s",
}


@pytest.mark.parametrize("where", ["shared directory", "hdfs", "object store"])
def test_what_a_move_of_50_mb_costs(
    cluster: tuple[Manager, Hosts], tmp_path: Path, where: str
) -> None:
    manager, network = cluster
    with ExitStack() as ending:
        checkpoint, more = place_of_state(where, tmp_path, ending)
        asked = {"checkpoint": checkpoint, "batches": 2, "settled_s": 15, "moves": 4}
        (tmp_path / "state.json").write_text(json.dumps(asked))
        writing = ending.enter_context(written_slowly(tmp_path / "in"))
        driver = Driver(
            state_program, tmp_path, manager,
            {**trial.PLAIN, **STATE, **penstock.session_settings((2, 2)), **manager.settings,
             **more},
        )  # fmt: skip
        ending.callback(lambda: driver.end(60 if driver.ended else 0))
        driver.until("the state", lambda: driver.ready)
        before = sum(map(network.received_bytes, hosts.WORKERS))
        (tmp_path / "go").touch()
        driver.until("the moves", lambda: driver.ended)
        crossed = (sum(map(network.received_bytes, hosts.WORKERS)) - before) / asked["moves"]
        assert writing.is_alive()
    assert [move["done"] for move in driver.moves] == [True] * asked["moves"], driver.account()
    if where != "shared directory":
        assert crossed > 0.9 * STATE_ROWS * BODY_BYTES
    loads = [round(move["load_s"], 2) for move in driver.moves]
    delays = [round(move["delay_s"], 2) for move in driver.moves]
    print(
        f"\nhosts, 50 MB of state, {where}, {hosts.BANDWIDTH}: loaded in {loads} s, batches longer "
        f"by {delays} s, {crossed / 1e6:.1f} MB a move received by workers"
    )


@pytest.fixture(scope="module")
def on_each_host(
    cluster: tuple[Manager, Hosts], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Followed]:
    """One query for the tests that are last, as it takes tasks until they have ended."""
    with Followed(cluster[0], tmp_path_factory.mktemp("each"), ALL) as run:
        yield run


def test_a_host_cut_off_for_a_minute_and_back(
    cluster: tuple[Manager, Hosts], on_each_host: Followed
) -> None:
    run, (_, network) = on_each_host, cluster
    host = spread_over_three(run)
    network.cut(host)
    try:
        time.sleep(CUT_S)  # the fault itself
    finally:
        network.mend(host)
    took_s = run.settle()
    run.driver.until("three executors", lambda: len(run.driver.executors) == 3)
    print(f"\nhosts: rows equal {took_s:.1f} s after a host came back that was away {CUT_S:g} s")


def test_two_of_three_workers_lost(cluster: tuple[Manager, Hosts], on_each_host: Followed) -> None:
    run, (manager, _) = on_each_host, cluster
    kept = spread_over_three(run)
    lost = sorted(set(run.driver.executors.values()) - {kept})
    for host in lost:
        manager.kill_node(host)
    try:
        run.driver.until(
            "executors on one host", lambda: set(run.driver.executors.values()) == {kept}
        )
        run.until_results()
        took_s = run.settle()
    finally:
        for host in lost:
            manager.revive_node(host)
    back_s = run.driver.until("all three", lambda: len(run.driver.executors) == 3)
    print(
        f"\nhosts: rows equal {took_s:.1f} s after the last with one worker of three; three "
        f"executors {back_s:.1f} s after the workers are back"
    )


def place_of_state(where: str, folder: Path, ending: ExitStack) -> tuple[str, dict[str, str]]:
    """The checkpoint's URI, and settings of Spark for it; skips where there is no such place."""
    if where == "shared directory":
        return str(folder / "checkpoint"), {}
    store = hadoop if where == "hdfs" else object_store
    if (reason := store.missing()) is not None:
        pytest.skip(reason)
    uri, settings = ending.enter_context(hosts.shared_files(where, folder / "store"))
    return f"{uri}/checkpoint", settings


@contextmanager
def written_slowly(folder: Path) -> Iterator[threading.Thread]:
    """All of the state in one file, then a row a second, so that batches go on."""
    folder.mkdir()
    ended = threading.Event()

    def write(name: str, keys: range, random: np.random.Generator) -> None:
        bodies = [random.bytes(BODY_BYTES) for _ in keys]
        pq.write_table(pa.table({"key": list(keys), "body": bodies}), folder / f".{name}")
        (folder / f".{name}").rename(folder / name)

    def go_on() -> None:
        random, number = np.random.default_rng(1), 1
        while not ended.wait(1.0):
            write(f"{number:06d}.parquet", range(number, number + 1), random)
            number += 1

    write("000000.parquet", range(STATE_ROWS), np.random.default_rng(0))
    thread = threading.Thread(target=go_on, daemon=True)
    thread.start()
    try:
        yield thread
    finally:
        ended.set()
        thread.join()


def spread_over_three(run: Followed) -> str:
    """Wait until each host has an executor and key groups, under a small load; names one."""
    driver = run.driver
    driver.until("an executor on each host", lambda: len(set(driver.executors.values())) == 3)
    run.feeder.rate_per_s = LOAD_PER_S
    driver.until("key groups on each host", lambda: hosts_with_state(driver) == 3)
    run.until_results()
    return sorted(driver.executors.values())[0]


def hosts_with_state(driver: Driver) -> int:
    return len({driver.executors.get(node) for node in driver.homes.values()} - {None})
