"""Attached users are told where their JVM compiles in every batch, and only there."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from penstock.spark.cluster.generated_code import SETTING

pytestmark = pytest.mark.spark

LIMIT_S = 120
TESTS = Path(__file__).parents[1]
BATCHES = 10
# The cache is the JVM's, so each size needs a process of its own. Branches differ in a constant of
# their code, and so are classes of their own.
SCRIPT = """
import sys, time
from functools import reduce
import penstock
from spark.sessions import plain_session
spark = plain_session({"spark.master": "local[2]", SETTING: sys.argv[1]})
rows = spark.readStream.format("rate").option("rowsPerSecond", 10).load()
rows = rows.select("value").coalesce(1)
branches = [rows.selectExpr(f"value * {n} + {n} AS value") for n in range(2, 34)]
query = reduce(lambda one, other: one.union(other), branches).writeStream.format("noop").start()
controller = penstock.attach(query, max_latency="60s", period_s=0.5, dry_run=True)
deadline = time.monotonic() + 60
def told():
    return [d for step in controller.steps if step.observation for d in step.observation.decided]
def batches():
    return query.lastProgress.batchId if query.lastProgress else 0
while not told() and batches() < BATCHES * 2 and time.monotonic() < deadline:
    time.sleep(0.2)
print("TOLD", [(d.room, d.what) for d in told()])
controller.detach()
query.stop()
spark.stop()
"""


def said_with(entries: int, folder: Path) -> str:
    script = folder / "attached.py"
    script.write_text(f"SETTING, BATCHES = {SETTING!r}, {BATCHES}\n{SCRIPT}")
    path = os.pathsep.join([str(TESTS), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, str(script), str(entries)], cwd=folder, capture_output=True, text=True,
        timeout=LIMIT_S, check=False, env={**os.environ, "PYTHONPATH": path},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout + done.stderr


def test_a_cache_that_is_too_small_is_told_with_the_setting(tmp_path: Path) -> None:
    said = said_with(5, tmp_path)
    assert "generated code" in said
    assert "because Spark keeps no more than 5 of them" in said
    assert f"{SETTING}=2000" in said


def test_a_cache_that_is_large_enough_is_not_told(tmp_path: Path) -> None:
    assert "TOLD []" in said_with(1000, tmp_path)
