"""Five topologies with rush hours one after the other: one host, beside five runs of fixed size.

Run: python -m benchmarks host (about a quarter of an hour; the five fixed runs have the machine to
themselves, one after the other), or host:common for three topologies with a common beginning.
"""

import math
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pyarrow.dataset as ds

from benchmarks._host_topologies import BOUND_S, COURSE_S, ROW_BY_ROW, Written, write
from penstock.control.history.store import HistoryStore
from penstock.control.step import Step
from penstock.control.summary import RunSummary, RunTally
from penstock.errors import Unavailable
from penstock.spark.host.client import Host, connect

SLOTS, EXECUTORS = 2, 5
SHARE = 2  # executors of a fixed run: the fewest with the slots that its rush needs
LIMIT_S = 600.0
POLL_S = 0.5
COMMON = "common"
CASES = (COMMON,)
OPTIONS = (
    "--slots", str(SLOTS), "--key-groups", "2", "--executor-memory-mb", "768",
    "--batch-interval", "3s", "--period", "3s",
)  # fmt: skip


def run(case: str = "") -> Iterator[dict[str, Any]]:
    """Executor-seconds of the fixed runs over the host's, or time and rows of common work."""
    with tempfile.TemporaryDirectory(prefix="penstock-host-") as folder:
        yield from _common(Path(folder)) if case == COMMON else _out_of_phase(Path(folder))


def _out_of_phase(folder: Path) -> Iterator[dict[str, Any]]:
    print("benchmarks: five topologies on one host ...", file=sys.stderr, flush=True)
    hosted = write(folder / "hosted")
    cluster = ("embedded", "--executors-max", str(EXECUTORS), *OPTIONS)
    with executor_seconds() as ours_s, host(folder, *cluster) as asked:
        for one in hosted:
            asked.submit(one.spec, name=one.name)
        ended(asked)
    ours = summaries(folder / "history.sqlite")
    said = ", ".join(f"{name} {_in_time(one)}" for name, one in ours.items())
    print(f"benchmarks: {sum(ours_s):.0f} executor-seconds; {said}", file=sys.stderr, flush=True)
    alone = write(folder / "alone")
    fixed: dict[str, RunSummary] = {}
    with executor_seconds() as fixed_s:
        for one in alone:
            print(f"benchmarks: {one.name} by itself ...", file=sys.stderr, flush=True)
            fixed |= _fixed(folder, one)
    for one in (*hosted, *alone):
        _check(one)
    conditions = (
        f"five topologies, {COURSE_S:g} s each, bound {BOUND_S:g} s; baseline: each by itself on "
        f"{SHARE} executors of {SLOTS} slots, one after the other; within the bound, host and "
        "fixed: "
        + ", ".join(
            f"{name} {_in_time(ours[name])} and {_in_time(fixed[name])}" for name in sorted(ours)
        )
        + f"; rows of {', '.join(ROW_BY_ROW)} are all there once, on either side"
    )
    yield _row("executor_seconds", sum(fixed_s), sum(ours_s), "executor-seconds", conditions)
    worst = min(one.in_time_share for one in ours.values())
    least = min(one.in_time_share for one in fixed.values())
    row = _row("least_in_time", least, worst, "share of results", conditions)
    yield {**row, "ratio": round(worst / least, 3)}


def _common(folder: Path) -> Iterator[dict[str, Any]]:
    """Three that read and look up the same rows: submitted together, and apart."""
    took: dict[str, dict[str, RunSummary]] = {}
    busy: dict[str, float] = {}
    for way in ("apart", "together"):
        print(f"benchmarks: three with a common beginning, {way} ...", file=sys.stderr, flush=True)
        place = folder / way
        place.mkdir()
        three = [one for one in write(place / "files", same_rows=True) if one.name in ROW_BY_ROW]
        with host(place, "local[4]", *OPTIONS) as asked:
            if way == "together":
                asked.submit([one.spec for one in three], name="all")
            else:
                for one in three:
                    asked.submit(one.spec, name=one.name)
            ended(asked)
        took[way] = summaries(place / "history.sqlite")
        busy[way] = _busy_s(place / "history.sqlite")
        for one in three:
            _check(one)
    conditions = (
        "three topologies that read and look up the same rows, four slots; baseline: submitted "
        "apart; processor-seconds of all tasks; rows read "
        f"{_rows(took['apart']):,} and {_rows(took['together']):,}; "
        "rows of all three are all there once, either way"
    )
    yield _row("common_work", busy["apart"], busy["together"], "processor-seconds", conditions)


def _row(name: str, baseline: float, ours: float, unit: str, conditions: str) -> dict[str, Any]:
    return {
        "name": f"host/{name}", "baseline": round(baseline, 3), "ours": round(ours, 3),
        "unit": unit, "ratio": round(baseline / ours, 2), "conditions": conditions,
    }  # fmt: skip


def _in_time(one: RunSummary) -> str:
    return f"{one.in_time_share:.1%}"


@contextmanager
def executor_seconds() -> Iterator[list[float]]:
    """What the executors of programs started meanwhile come to, start-up included."""
    counted: list[float] = []
    over = threading.Event()

    def count() -> None:
        before_s = time.monotonic()
        while not over.wait(POLL_S):
            now_s = time.monotonic()
            counted.append(_executors_below(os.getpid()) * (now_s - before_s))
            before_s = now_s

    counting = threading.Thread(target=count, daemon=True)
    counting.start()
    try:
        yield counted
    finally:
        over.set()
        counting.join()


def _executors_below(pid: int) -> int:
    """How many processes that descend from one are executors of Spark."""
    below: dict[int, list[int]] = defaultdict(list)
    executors = set()
    for process in map(int, filter(str.isdigit, os.listdir("/proc"))):
        with suppress(OSError):
            state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
            below[int(state[1])].append(process)
            if b"CoarseGrainedExecutorBackend" in Path(f"/proc/{process}/cmdline").read_bytes():
                executors.add(process)
    family = [pid]
    for process in family:  # it grows while it is read
        family += below[process]
    return len(executors & set(family))


@contextmanager
def host(folder: Path, master: str, *options: str) -> Iterator[Host]:
    """`penstock host` in a process of its own, whose history is in the folder."""
    state = folder / "state"
    state.mkdir()
    os.environ["XDG_RUNTIME_DIR"] = str(state)
    command = [
        sys.executable, "-m", "penstock", "host", "--master", master, *options,
        "--directory", str(folder / "host"), "--history", str(folder / "history.sqlite"),
    ]  # fmt: skip
    with (folder / "said.txt").open("wb") as said:
        process = subprocess.Popen(command, stdout=said, stderr=said)
        try:
            yield _connected(process, folder / "said.txt")
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(LIMIT_S)


def _connected(process: "subprocess.Popen[bytes]", said: Path) -> Host:
    deadline = time.monotonic() + LIMIT_S
    while time.monotonic() < deadline and process.poll() is None:
        try:
            return connect()
        except Unavailable:
            time.sleep(0.2)
    raise RuntimeError(f"no host came up: {said.read_text()[-2000:]}")


def ended(asked: Host) -> None:
    """Wait until every topology has ended; one that failed ends the benchmark."""
    deadline = time.monotonic() + LIMIT_S
    while time.monotonic() < deadline:
        now = {one["name"]: one for one in asked.ps()}
        if failed := [f"{n}: {one['why']}" for n, one in now.items() if one["state"] == "failed"]:
            raise RuntimeError("; ".join(failed))
        if all(one["state"] == "ended" for one in now.values()):
            return
        time.sleep(1.0)
    raise TimeoutError(f"not ended: {now}")


def summaries(history: Path) -> dict[str, RunSummary]:
    """What the recorded runs came to, by topology."""
    found = {}
    with HistoryStore(str(history)) as store:
        for number, ran in store.runs().items():
            tally = RunTally()
            for seen in store.read_observations(number):
                tally.take(Step(seen.at_s, seen))
            found[ran.topology] = tally.summary(BOUND_S, 1, EXECUTORS)
    return found


def _busy_s(history: Path) -> float:
    with HistoryStore(str(history)) as store:
        return sum(
            part.busy_s
            for number in store.runs()
            for seen in store.read_observations(number)
            for part in seen.components
            if math.isfinite(part.busy_s)
        )


def _rows(took: Mapping[str, RunSummary]) -> int:
    return sum(one.results for one in took.values())


def _fixed(folder: Path, one: Written) -> Mapping[str, RunSummary]:
    history = folder / f"{one.name}.sqlite"
    command = [
        sys.executable, "-m", "penstock", "run", one.spec, "--master", "embedded",
        "--policy", "static", "--executors-min", str(SHARE), "--executors-max", str(SHARE),
        *OPTIONS, "--checkpoint", str(folder / f"{one.name}-checkpoint"), "--history", str(history),
    ]  # fmt: skip
    ran = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S, check=False)
    if ran.returncode:
        raise RuntimeError(f"{one.name} by itself failed: {ran.stderr[-2000:]}")
    return summaries(history)


def _check(one: Written) -> None:
    """Every row once, where rows come out one by one."""
    if one.name not in ROW_BY_ROW:
        return
    rows = ds.dataset(one.out, format="parquet").to_table(columns=["row"]).column(0).to_pylist()
    if sorted(rows) != list(range(one.rows)):
        raise RuntimeError(f"{one.name}: {len(rows)} rows came out, {one.rows} were expected")
