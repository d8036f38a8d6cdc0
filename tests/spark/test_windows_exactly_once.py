"""Sliding windows whose hot keys are split otherwise every batch, under kill -9."""

import json
import os
import random
import signal
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.dataset as ds
import pytest

from spark import windowed_run
from spark.killed_program import Program, await_executors, finish

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("no_session")]


@pytest.mark.long
def test_killed_windows_equal_a_recomputation(tmp_path: Path) -> None:
    seed = int(os.environ.get("PENSTOCK_TEST_SEED", random.randrange(2**32)))
    print(f"PENSTOCK_TEST_SEED={seed}")
    moments = random.Random(seed)
    rows = 45_000  # enough for all the kills; what is left is read at the end
    for _ in range(8):
        program = Program(windowed_run.__file__, tmp_path, "local[2]", str(rows))
        _await_batches(program, moments)
        program.kill()
    program = Program(windowed_run.__file__, tmp_path, "embedded", str(rows))
    _await_batches(program, moments)
    os.kill(moments.choice(await_executors(program.process.pid)), signal.SIGKILL)
    _await_batches(program, moments)
    program.kill()
    finish(windowed_run, tmp_path, "local[2]", rows)
    _compare(tmp_path, rows)


def _await_batches(program: Program, moments: random.Random) -> None:
    for _ in range(moments.randint(2, 3)):
        assert program.await_line("batch", "finished").startswith("batch"), program.errors()
    time.sleep(moments.uniform(0.0, 0.8))  # the random moment itself, no synchronisation


def _compare(directory: Path, count: int) -> None:
    epoch = json.loads((directory / "checkpoint/penstock/epoch.json").read_text())["epoch_s"]
    rows = windowed_run.stream(count).batch(0, count, epoch).to_pandas()
    at = rows["at"].dt.as_unit("us").astype("int64").to_numpy()
    watermark = (int(at.max()) - 1_000_000) // 1000 * 1000
    copies = []
    for back in range(10):  # a row is in ten windows
        start = (at // 100_000 - back) * 100_000
        copies.append(rows.assign(start=start)[start + 1_000_000 <= watermark])
    expected = pd.concat(copies).groupby(["key", "start"]).agg(
        n=("row", "size"), total=("row", "sum"), most=("value", "max"), span=("row", np.ptp)
    )  # fmt: skip
    files = [str(file) for file in (directory / "out").glob("batch=*/*.parquet")]
    found = ds.dataset(files).to_table().to_pandas()
    start = pd.DatetimeIndex([window["start"] for window in found["window"]])
    found["start"] = start.tz_localize(None).astype("datetime64[us]").astype("int64")
    found = found.drop(columns="window").set_index(["key", "start"]).sort_index()
    assert found.index.is_unique
    assert found.equals(expected[found.columns].sort_index())
