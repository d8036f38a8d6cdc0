"""A plain PySpark script with and without `penstock.attach`, beside Spark's own dynamic allocation
and fixed sizes, under the same load that goes 1 -> 4 -> 1.

Everything is measured from outside: executors by what the cluster's master counts, latency from
when a row's file appeared to when Spark's file sink committed the batch with it.

Run: make bench-elastic
"""

import json
import math
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlparse

import numpy as np
import pyarrow.parquet as pq

from penstock.spark.act.executors import executor_settings
from penstock.spark.cluster.embedded import EmbeddedCluster
from penstock.spark.cluster.session import QUICK_START
from penstock.workloads.gantries import RushHour
from penstock.workloads.profiles import RateProfile

EXAMPLES = Path(__file__).parent.parent / "examples"
SLOTS, MOST, MEMORY_MB = 2, 4, 768
BOUND_S = 5.0
FILE_EVERY_S = 0.25
AFTER_S = 25.0  # for what waits when the load ends
POLL_S = 0.25
START_S = 20.0  # until a script has its first executor, about

_DRA = "spark.dynamicAllocation."
MODES: dict[str, tuple[str, dict[str, str]]] = {
    "static-1": ("plain_stream.py", {"spark.cores.max": str(SLOTS)}),
    "static-4": ("plain_stream.py", {"spark.cores.max": str(SLOTS * MOST)}),
    "dynamic allocation": (
        "plain_stream.py",
        {
            f"{_DRA}enabled": "true", f"{_DRA}shuffleTracking.enabled": "true",
            f"{_DRA}minExecutors": "1", f"{_DRA}maxExecutors": str(MOST),
            "spark.cores.max": str(SLOTS * MOST),
        },
    ),
    "attached": ("attached_stream.py", executor_settings(1, MOST, SLOTS)),
}  # fmt: skip


def load_profile() -> RateProfile:
    """1 -> 4 -> 1 in under two minutes."""
    return RushHour(15, 40, 65, 75, 115).profile(150, 600)


def run() -> Iterator[dict[str, Any]]:
    """Two rows for each mode but the first: results in time, and executor-seconds."""
    found = {}
    for number, mode in enumerate(MODES, 1):
        _say(f"{number} of {len(MODES)}, {mode}: about {_duration_s() + START_S:.0f} s ...")
        found[mode] = _measured(mode)
        _say(f"{mode}: {_in_words(found[mode])}")
    attached = found["attached"]
    conditions = "; ".join(f"{mode}: {_in_words(one)}" for mode, one in found.items())
    for mode, one in found.items():
        if mode == "attached":
            continue
        yield {
            "name": f"attach_in_time/{mode}",
            "baseline": one["in_time"],
            "ours": attached["in_time"],
            "unit": "share of rows within 5 s",
            "ratio": attached["in_time"] / max(one["in_time"], 1e-9),
            "conditions": conditions,
        }
        yield {
            "name": f"attach_cost/{mode}",
            "baseline": one["executor_s"],
            "ours": attached["executor_s"],
            "unit": "executor-seconds",
            "ratio": one["executor_s"] / attached["executor_s"],
            "conditions": conditions,
        }


def _say(text: str) -> None:
    print(f"benchmarks: elastic, {text}", file=sys.stderr, flush=True)


def _in_words(one: dict[str, float]) -> str:
    return (
        f"{one['in_time']:.3f} in time, {one['executor_s']:.0f} executor-seconds, mean "
        f"{one['mean_s']:.2f} s, {one['rows']} rows, lost {one['lost']}, twice {one['twice']}"
    )


def _duration_s() -> float:
    return load_profile().duration_s + AFTER_S


def _measured(mode: str) -> dict[str, float]:
    script, settings = MODES[mode]
    with tempfile.TemporaryDirectory(prefix="penstock-elastic-") as folder:
        where = Path(folder)
        for name in ("in", "conf"):
            (where / name).mkdir(mode=0o700)
        with EmbeddedCluster(SLOTS * MOST, MEMORY_MB * MOST) as cluster:
            _write_defaults(
                where / "conf" / "spark-defaults.conf", {**cluster.settings, **settings}
            )
            duration_s = _duration_s()
            program = _start(script, where, duration_s)
            _until_executors(cluster, program)
            feeder = threading.Thread(target=_feed, args=(where / "in",), daemon=True)
            feeder.start()
            executor_s = _watch(cluster, program, duration_s)
            feeder.join()
        return {**_latencies(where), "executor_s": executor_s}


def _write_defaults(file: Path, settings: dict[str, str]) -> None:
    common = {
        "spark.executor.cores": str(SLOTS),
        "spark.executor.memory": f"{MEMORY_MB}m",
        "spark.executor.extraJavaOptions": QUICK_START,
        "spark.driver.extraJavaOptions": QUICK_START,
        "spark.ui.enabled": "false",
        "spark.decommission.enabled": "true",
    }
    lines = [f"{key} {value}" for key, value in {**common, **settings}.items() if value != ""]
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    file.chmod(0o600)


def _start(script: str, where: Path, duration_s: float) -> "subprocess.Popen[bytes]":
    command = [sys.executable, str(EXAMPLES / script)]
    command += [str(where / name) for name in ("in", "out", "checkpoint")]
    environment = {
        **os.environ,
        "SPARK_CONF_DIR": str(where / "conf"),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PYSPARK_PYTHON": sys.executable,
        "PENSTOCK_HISTORY": str(where / "history.sqlite"),
    }
    log = (where / "log").open("wb")
    return subprocess.Popen(
        [*command, str(duration_s + 60)], env=environment, stdout=log, stderr=log, cwd=where
    )


def _until_executors(cluster: EmbeddedCluster, program: "subprocess.Popen[bytes]") -> None:
    """The clock starts when executors are there, as it would for a stream that runs."""
    deadline = time.monotonic() + 120
    while cluster.status().slots_used == 0:
        if time.monotonic() > deadline or program.poll() is not None:
            raise RuntimeError("the script did not get an executor")
        time.sleep(POLL_S)


def _feed(where: Path) -> None:
    """Files of rows as the load says, each row with the time its file appeared."""
    rate, start_s, sent = load_profile(), time.time(), 0
    while sent < int(rate.rows):
        time.sleep(FILE_EVERY_S)
        due = min(int(rate.rows_by(time.time() - start_s)), int(rate.rows))
        if due > sent:
            at = time.time()
            text = "".join(f'{{"vehicle": {row}, "at": {at}}}\n' for row in range(sent, due))
            staged = where / f".{sent}"
            staged.write_text(text, encoding="utf-8")
            staged.rename(where / f"{sent:09}.json")
            sent = due


def _watch(
    cluster: EmbeddedCluster, program: "subprocess.Popen[bytes]", duration_s: float
) -> float:
    """Executor-seconds while the load lasts; the script is then ended."""
    executor_s, last = 0.0, time.monotonic()
    end = last + duration_s
    while (now := time.monotonic()) < end:
        if program.poll() is not None:
            raise RuntimeError("the script ended before the load did")
        executor_s += cluster.status().slots_used / SLOTS * (now - last)
        last = now
        time.sleep(POLL_S)
    program.terminate()
    program.wait(60)
    return executor_s


def _latencies(where: Path) -> dict[str, float]:
    """From the sink's own commit log: which files each batch published, and when."""
    latency_s, vehicles, published = [], [], set()
    logged = (where / "out" / "_spark_metadata").iterdir()
    commits = [file for file in logged if file.name.split(".")[0].isdigit()]
    for commit in sorted(commits, key=lambda file: int(file.name.split(".")[0])):
        for line in commit.read_text(encoding="utf-8").splitlines()[1:]:
            file = Path(unquote(urlparse(json.loads(line)["path"]).path))
            if file in published:
                continue  # every tenth commit lists all files again
            published.add(file)
            rows = pq.read_table(file).to_pydict()
            latency_s += [commit.stat().st_mtime - at for at in rows["at"]]
            vehicles += rows["vehicle"]
    sent = int(load_profile().rows)
    waited = np.array(latency_s) if latency_s else np.array([math.inf])
    # A row that never came out was not in time.
    lost = sent - len(set(vehicles))
    return {
        "rows": len(vehicles),
        "lost": lost,
        "twice": len(vehicles) - len(set(vehicles)),
        "in_time": float((waited <= BOUND_S).sum() / (len(waited) + lost)),
        "mean_s": float(waited.mean()),
    }
