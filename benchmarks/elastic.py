"""A plain PySpark script with and without `penstock.attach`, beside Spark's own dynamic allocation
and fixed sizes, under the same load that goes 1 -> 4 -> 1.

Everything is measured from outside: executors by what the cluster's master counts, latency from
when a row's file appeared to when Spark's file sink committed the batch with it. Start-up is told
beside the share in time, not in it, by the rule of every run.

Run: make bench-elastic; `python -m benchmarks elastic:short` for half a minute of load and two of
the modes, which shows that it works and nothing else.
"""

import math
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks._sink_latencies import InTime, delivered, in_time
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
SHORT = "short"
CASES = (SHORT,)

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


@dataclass(frozen=True)
class Measured:
    """What one mode came to."""

    of_rows: InTime
    executor_s: float

    def __str__(self) -> str:
        return f"{self.of_rows}, {self.executor_s:.0f} executor-seconds"


def load_profile(case: str = "") -> RateProfile:
    """1 -> 4 -> 1 in under two minutes."""
    if case == SHORT:
        return RushHour(8, 12, 20, 24, 30).profile(50, 200)
    return RushHour(15, 40, 65, 75, 115).profile(150, 600)


def run(case: str = "") -> Iterator[dict[str, Any]]:
    """Two rows for each mode but the last: results in time, and executor-seconds."""
    load, found = load_profile(case), {}
    modes = ("static-1", "attached") if case == SHORT else tuple(MODES)
    for number, mode in enumerate(modes, 1):
        about_s = load.duration_s + AFTER_S + START_S
        _say(f"{number} of {len(modes)}, {mode}: about {about_s:.0f} s ...")
        found[mode] = _measured(mode, load)
        _say(f"{mode}: {found[mode]}")
    attached = found.pop("attached")
    conditions = "; ".join(f"{mode}: {one}" for mode, one in found.items())
    conditions += f"; attached: {attached}"
    for mode, one in found.items():
        yield {
            "name": f"attach_in_time/{mode}",
            "baseline": _known(one.of_rows.share),
            "ours": _known(attached.of_rows.share),
            "unit": f"share of rows within {BOUND_S:g} s, after start-up",
            "ratio": _known(attached.of_rows.share / max(one.of_rows.share, 1e-9)),
            "conditions": conditions,
        }
        yield {
            "name": f"attach_cost/{mode}",
            "baseline": one.executor_s,
            "ours": attached.executor_s,
            "unit": "executor-seconds",
            "ratio": one.executor_s / attached.executor_s,
            "conditions": conditions,
        }


def _known(share: float) -> float | None:
    """JSON has no word for a share of nothing: all rows came during start-up."""
    return None if math.isnan(share) else share


def _say(text: str) -> None:
    print(f"benchmarks: elastic, {text}", file=sys.stderr, flush=True)


def _measured(mode: str, load: RateProfile) -> Measured:
    script, settings = MODES[mode]
    with tempfile.TemporaryDirectory(prefix="penstock-elastic-") as folder:
        where = Path(folder)
        for name in ("in", "conf"):
            (where / name).mkdir(mode=0o700)
        with EmbeddedCluster(SLOTS * MOST, MEMORY_MB * MOST) as cluster:
            _write_defaults(
                where / "conf" / "spark-defaults.conf", {**cluster.settings, **settings}
            )
            duration_s = load.duration_s + AFTER_S
            program = _start(script, where, duration_s)
            _until_executors(cluster, program)
            feeder = threading.Thread(target=_feed, args=(where / "in", load), daemon=True)
            feeder.start()
            executor_s = _watch(cluster, program, duration_s)
            feeder.join()
        return Measured(in_time(delivered(where / "out"), int(load.rows), BOUND_S), executor_s)


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


def _feed(where: Path, rate: RateProfile) -> None:
    """Files of rows as the load says, each row with the time its file appeared."""
    start_s, sent = time.time(), 0
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
