"""Two topologies on one host, killed with -9 and started again: every row once."""

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.dataset as ds
import pytest

from penstock.errors import InvalidInput, Unavailable
from penstock.spark.host.client import Host, connect

pytestmark = pytest.mark.spark

LIMIT_S = 240
ROWS = 2000
BESIDE = "FACTOR = {factor}\n"
FILE = """
from penstock import Files, Generator, Topology, constant
from pyspark.sql import functions as F

from beside import FACTOR

made = Topology("made", max_latency="30s")
made.source(
    "rows", Generator(constant(300.0), keys=10, seed={seed}, rows={rows}, max_rows=250)
)


@made.operator("rows")
def times(rows):
    return rows.select("row", (F.col("row") * FACTOR).alias("times"))


made.sink("out", "times", Files({out!r}, format="parquet"))
"""
FAILS = """
from penstock import Files, Generator, Topology, constant
from pyspark.sql import functions as F

made = Topology("made", max_latency="30s")
made.source("rows", Generator(constant(100.0), keys=10, seed=1))


@made.operator("rows")
def fails(rows):
    return rows.select(F.raise_error(F.lit("as it was told to")).cast("long").alias("row"))


made.sink("out", "fails", Files({out!r}, format="parquet"))
"""


HARMS = """
import time

import pandas as pd
from penstock import Files, Generator, Topology, constant
from pyspark.sql import functions as F
from pyspark.sql.types import LongType

made = Topology("made", max_latency="30s")
made.source("rows", Generator(constant(300.0), keys=10, seed=1))


@F.pandas_udf(LongType())
def harms(rows: pd.Series) -> pd.Series:
    kept = []
    while True:
        {harm}


@made.operator("rows")
def bad(rows):
    return rows.select(harms("row").alias("row"))


made.sink("out", "bad", Files({out!r}, format="parquet"))
"""


class HostProcess:
    """`penstock host` in a process of its own."""

    def __init__(self, directory: Path, master: str = "local[2]", *more: str) -> None:
        self._said = (directory / "said.txt").open("ab")
        self.process = subprocess.Popen(
            [sys.executable, "-m", "penstock", "host", "--master", master, *more,
             "--directory", str(directory / "host"), "--period", "1s",
             "--history", str(directory / "history.sqlite")],
            stdout=self._said, stderr=self._said,
        )  # fmt: skip

    def connected(self) -> Host:
        return awaited(self._connect)

    def _connect(self) -> Host | None:
        assert self.process.poll() is None, "the host ended"
        try:
            found = connect()
        except Unavailable:
            return None
        return found if found.address.pid == self.process.pid else None

    def kill(self) -> None:
        self.process.kill()
        self.close()

    def close(self) -> None:
        if sys.exc_info()[0] is not None:
            self.process.terminate()  # the test has failed before it told the host to end
        self.process.wait(LIMIT_S)
        self._said.close()


def awaited(look: Callable[[], Any]) -> Any:
    deadline = time.monotonic() + LIMIT_S
    while time.monotonic() < deadline:
        found = look()
        if found:
            return found
        time.sleep(0.1)
    pytest.fail(f"nothing came of it within {LIMIT_S} s")


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "state"))
    (tmp_path / "state").mkdir()
    return tmp_path


def written(place: Path, name: str, seed: int, factor: int) -> str:
    folder = place / name
    folder.mkdir()
    (folder / "beside.py").write_text(BESIDE.format(factor=factor), encoding="utf-8")
    text = FILE.format(seed=seed, rows=ROWS, out=str(place / f"out-{name}"))
    (folder / "flow.py").write_text(text, encoding="utf-8")
    return f"{folder / 'flow.py'}:made"


def rows_of(place: Path, name: str) -> list[tuple[int, int]]:
    out = place / f"out-{name}"
    if not out.is_dir() or not list(out.glob("batch=*")):
        return []
    table = ds.dataset(out, format="parquet").to_table(columns=["row", "times"]).to_pydict()
    return sorted(zip(table["row"], table["times"], strict=True))


def states(host: Host) -> dict[str, str]:
    return {one["name"]: one["state"] for one in host.ps()}


@pytest.mark.long  # two sessions one after the other, with three topologies
def test_everything_comes_back_after_a_kill(place: Path) -> None:
    first = HostProcess(place)
    try:
        host = first.connected()
        assert host.submit(written(place, "double", 1, 2), name="double") is None
        token = host.community("x", least=1, add=("ada",))["ada"]
        ada = connect(f"127.0.0.1:{host.address.port}", token)
        ada.submit(written(place, "triple", 2, 3), name="triple", weight=2.0)
        failing = place / "fails.py"
        failing.write_text(FAILS.format(out=str(place / "out-fails")), encoding="utf-8")
        host.submit(f"{failing}:made", name="fails")
        awaited(lambda: states(host)["fails"] == "failed")
        awaited(lambda: rows_of(place, "double") and rows_of(place, "triple"))
        said = {one["name"]: one["why"] for one in host.ps()}
        assert "as it was told to" in said["fails"]
        assert [one["name"] for one in ada.ps()] == ["triple"]
        row, times = ada.results("triple", rows=1)["rows"][0]
        assert int(times) == 3 * int(row)
        with pytest.raises(InvalidInput, match="no topology is named 'double'; known: triple"):
            ada.results("double")
        host.stop("fails")
    finally:
        first.kill()
    again = HostProcess(place)
    try:
        host = again.connected()
        assert set(states(host)) == {"double", "triple", "fails"}
        assert states(host)["fails"] == "stopped"
        awaited(lambda: states(host)["double"] == states(host)["triple"] == "ended")
        assert any("runs" in line for line in host.logs("double"))
        for name, factor in (("double", 2), ("triple", 3)):
            assert rows_of(place, name) == [(row, row * factor) for row in range(ROWS)]
        os.kill(again.process.pid, 15)
    finally:
        again.close()
    assert again.process.returncode == 0


def harmful(place: Path, name: str, harm: str) -> str:
    file = place / f"{name}.py"
    text = HARMS.format(harm=harm, out=str(place / f"out-{name}"))
    file.write_text(text, encoding="utf-8")
    return f"{file}:made"


@pytest.mark.long  # a session of its own
def test_code_that_never_returns_or_eats_memory_is_killed_alone(place: Path) -> None:
    started = HostProcess(place, "local[3]", "--batch-limit", "20s", "--worker-memory-mb", "2048")
    try:
        host = started.connected()
        host.submit(harmful(place, "hangs", "time.sleep(1)"), name="hangs")
        eats = "kept.append(bytearray(64 * 2**20))"
        host.submit(harmful(place, "eats", eats), name="eats")
        awaited(lambda: states(host)["hangs"] == "running")
        host.submit(written(place, "double", 1, 2), name="double")
        awaited(lambda: states(host)["eats"] == states(host)["hangs"] == "failed")
        awaited(lambda: states(host)["double"] == "ended")
        why = {one["name"]: one["why"] for one in host.ps()}
        assert "has not ended within 20 s" in why["hangs"]
        assert "MemoryError" in why["eats"]
        assert rows_of(place, "double") == [(row, row * 2) for row in range(ROWS)]
        host.submit(written(place, "triple", 2, 3), name="triple")  # all processors are free again
        awaited(lambda: states(host)["triple"] == "ended")
        assert rows_of(place, "triple") == [(row, row * 3) for row in range(ROWS)]
        os.kill(started.process.pid, 15)
    finally:
        started.close()


@pytest.mark.long  # a session of its own
def test_what_hangs_together_is_read_once(place: Path) -> None:
    started = HostProcess(place)
    try:
        host = started.connected()
        specs = []
        for name, factor in (("double", 2), ("triple", 3), ("again", 2)):
            file = Path(written(place, name, 1, factor).rpartition(":")[0])
            file.write_text(file.read_text(encoding="utf-8").replace("made", name))
            specs.append(f"{file}:{name}")
        host.submit(specs, name="all")
        awaited(lambda: states(host)["all"] == "running")
        common = {tuple(one["topologies"]): one for one in host.explain()}
        assert common["all/double", "all/triple", "all/again"]["steps"] == ["rows"]
        assert common["all/double", "all/again"]["steps"] == ["times"]
        assert all(one["once"] for one in common.values())
        awaited(lambda: states(host)["all"] == "ended")
        for name, factor in (("double", 2), ("triple", 3), ("again", 2)):
            assert rows_of(place, name) == [(row, row * factor) for row in range(ROWS)]
        os.kill(started.process.pid, 15)
    finally:
        started.close()


@pytest.mark.long  # a cluster of its own
def test_topologies_on_a_cluster_that_grows(place: Path) -> None:
    started = HostProcess(place, "embedded", "--executors-max", "2", "--slots", "2")
    try:
        host = started.connected()
        for name, seed, factor in (("double", 1, 2), ("triple", 2, 3)):
            host.submit(written(place, name, seed, factor), name=name)
        awaited(lambda: states(host)["double"] == states(host)["triple"] == "running")
        awaited(lambda: all(one["state"] == "ended" for one in host.ps()))
        for name, factor in (("double", 2), ("triple", 3)):
            assert rows_of(place, name) == [(row, row * factor) for row in range(ROWS)]
        os.kill(started.process.pid, 15)
    finally:
        started.close()
    assert started.process.returncode == 0
