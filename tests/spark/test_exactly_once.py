"""kill -9 at random moments: the outputs equal a batch recomputation, row for row."""

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

from spark import stateful_run
from spark.killed_program import Program, await_executors, finish

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("no_session")]


@pytest.fixture
def seed(request: pytest.FixtureRequest) -> int:
    """A new one each time, printed when the test fails, or PENSTOCK_TEST_SEED."""
    chosen = int(os.environ.get("PENSTOCK_TEST_SEED", random.randrange(2**32)))
    print(f"PENSTOCK_TEST_SEED={chosen}")
    return chosen


@pytest.mark.long  # the soak kills a driver in every run
def test_driver_killed_at_random_moments(tmp_path: Path, seed: int, kills: int) -> None:
    moments = random.Random(seed)
    for _ in range(kills):
        program = Program(stateful_run.__file__, tmp_path, "local[2]")
        for _ in range(moments.randint(1, 3)):
            assert program.await_line("batch", "finished").startswith("batch"), _errors(tmp_path)
        time.sleep(moments.uniform(0.0, 0.8))  # the random moment itself, no synchronisation
        program.kill()
    finish(stateful_run, tmp_path, "local[2]")
    _compare(tmp_path)


@pytest.mark.long  # the soak kills executors in every run
def test_executors_killed_at_random_moments(tmp_path: Path, seed: int, kills: int) -> None:
    moments = random.Random(seed)
    program = Program(stateful_run.__file__, tmp_path, "embedded")
    for _ in range(min(kills, 4)):
        for _ in range(moments.randint(1, 3)):
            assert program.await_line("batch", "finished").startswith("batch"), _errors(tmp_path)
        time.sleep(moments.uniform(0.0, 0.8))
        os.kill(moments.choice(await_executors(program.process.pid)), signal.SIGKILL)
    assert program.await_line("finished") == "finished", _errors(tmp_path)
    program.close()
    finish(stateful_run, tmp_path, "local[2]")
    _compare(tmp_path)


@pytest.fixture
def kills(request: pytest.FixtureRequest) -> int:
    """Kills of each test; more with --long."""
    return 25 if request.config.getoption("--long") else 1


def _compare(directory: Path) -> None:
    epoch_s = json.loads((directory / "checkpoint/penstock/epoch.json").read_text())["epoch_s"]
    rows = stateful_run.STREAM.batch(0, stateful_run.ROWS, epoch_s).to_pandas()
    rows["doubled"] = rows["value"] * 2
    _same(_output(directory / "raw"), rows, ["row"])

    rows["window"] = rows["at"].dt.floor("1s")
    closed = rows["at"].max() - pd.Timedelta(seconds=stateful_run.WATERMARK_S)
    rows = rows[rows["window"] + pd.Timedelta(seconds=1) <= closed.floor("1ms")]
    by_key = rows.groupby(["key", "window"]).agg(n=("row", "size"), total=("doubled", "sum"))
    found = _output(directory / "keys")
    found["window"] = pd.to_datetime([w["start"] for w in found["window"]], utc=True)
    _same(found, by_key.reset_index(), ["window", "key"])

    by_window = by_key.reset_index().groupby("window").agg(n=("n", "sum"), keys=("n", "size"))
    by_window.index.name = "since"
    _same(_output(directory / "windows"), by_window.reset_index(), ["since"])


def _output(path: Path) -> pd.DataFrame:
    files = [str(file) for file in path.glob("batch=*/*.parquet")]
    found = ds.dataset(files).to_table().to_pandas()
    for column in found.select_dtypes("datetime"):
        found[column] = found[column].dt.tz_localize("UTC")
    return found


def _same(found: pd.DataFrame, expected: pd.DataFrame, by: list[str]) -> None:
    columns = sorted(expected.columns.intersection(found.columns))
    assert set(by) <= set(columns)
    left = found[columns].sort_values(by).reset_index(drop=True)
    right = expected[columns].sort_values(by).reset_index(drop=True)
    assert len(left) == len(right), f"{len(left)} rows where a batch gives {len(right)}"
    for column in columns:
        if column == "total":
            # Floating-point sums depend on the order of rows, which Spark does not promise.
            np.testing.assert_allclose(left[column], right[column], rtol=1e-9)
        else:
            assert (left[column] == right[column]).all(), column


def _errors(directory: Path) -> str:
    return (directory / "stderr.txt").read_text()[-3000:]
