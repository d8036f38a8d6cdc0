"""kill -9 while queries hand rows to each other: the outputs equal a batch recomputation."""

import json
import os
import random
import subprocess
import sys
import time
from pathlib import Path

import pandas as pd
import pyarrow.dataset as ds
import pytest

from examples.patterns import maximal_patterns
from penstock.spark.channels.log import Channel
from soak.verify import in_turns, published
from spark import apart_run
from spark.killed_program import finish

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("no_session")]

LIMIT_S = 180
ROOT = Path(__file__).parents[2]


@pytest.fixture
def seed() -> int:
    """A new one each time, printed when the test fails, or PENSTOCK_TEST_SEED."""
    chosen = int(os.environ.get("PENSTOCK_TEST_SEED", random.randrange(2**32)))
    print(f"PENSTOCK_TEST_SEED={chosen}")
    return chosen


def killed(which: str, directory: Path, moments: random.Random) -> None:
    """Let the program get so far, then kill it."""
    with (directory / "stderr.txt").open("ab") as errors:
        program = start(which, directory, errors)
        assert program.stdout is not None
        for _ in range(moments.randint(2, 9)):
            line = program.stdout.readline()
            assert line.startswith((b"batch", b"finished")), output_of(directory)
            if line.startswith(b"finished"):
                break
        time.sleep(moments.uniform(0.0, 0.5))  # the random moment itself, no synchronisation
        program.kill()
        program.wait(LIMIT_S)
        program.stdout.close()


def start(which: str, directory: Path, errors: object) -> "subprocess.Popen[bytes]":
    command = [sys.executable, apart_run.__file__, which, str(directory)]
    path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])  # for examples
    environment = os.environ | {"PYTHONPATH": path}
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, env=environment)  # type: ignore[call-overload,no-any-return]


def output_of(directory: Path) -> str:
    return (directory / "stderr.txt").read_text()[-3000:]


@pytest.mark.long
def test_a_loop_killed_at_random_moments(tmp_path: Path, seed: int) -> None:
    moments = random.Random(seed)
    for _ in range(15):
        killed("loop", tmp_path, moments)
    finish(apart_run, "loop", tmp_path)
    found = published(tmp_path / "patterns")
    assert in_turns(found) == []
    net = found.groupby("itemset")["delta"].sum()
    wanted = maximal_patterns(apart_run.TWEETS, apart_run.TWEET_COUNT, apart_run.THRESHOLD)
    assert {itemset for itemset, count in net.items() if count} == wanted
    assert any("," in itemset for itemset in wanted), "no superset, so nothing went round the loop"
    passed_files_are_gone(tmp_path, "generate", "detect")


@pytest.mark.long
def test_a_chain_killed_at_random_moments(tmp_path: Path, seed: int) -> None:
    moments = random.Random(seed)
    for _ in range(10):
        killed("chain", tmp_path, moments)
    finish(apart_run, "chain", tmp_path)
    compare_chain(tmp_path)


def passed_files_are_gone(directory: Path, *channels: str) -> None:
    """Only what the last batches read is kept: a reader is told of its last commit one late."""
    for name in channels:
        channel = Channel(directory / "checkpoint/penstock/channels" / name)
        passed = min(channel.positions().values())
        kept = {c.file for e in channel.since(0) if e.end_row > passed for c in e.chunks}
        assert {file.name for file in (channel.directory / "data").iterdir()} <= kept
        assert passed > 0


def compare_chain(directory: Path) -> None:
    epoch_s = json.loads((directory / "checkpoint/penstock/epoch.json").read_text())["epoch_s"]
    stream = apart_run.STREAM
    assert stream.rows is not None
    rows = stream.batch(0, stream.rows, epoch_s).to_pandas()
    raw = rows_of(directory / "raw")
    assert sorted(raw["row"]) == list(range(stream.rows))
    rows["window"] = rows["at"].dt.floor("1s")
    closed = (rows["at"].max() - pd.Timedelta(seconds=1)).floor("1ms")
    rows = rows[rows["window"] + pd.Timedelta(seconds=1) <= closed]
    by_key = rows.groupby(["window", "key"]).size()
    keys = rows_of(directory / "keys")
    keys["window"] = [w["start"].replace(tzinfo=None) for w in keys["window"]]
    found = keys.set_index(["window", "key"])["n"].sort_index()
    assert found.index.is_unique
    assert found.to_dict() == {
        (window.tz_localize(None), key): n for (window, key), n in by_key.items()
    }
    windows = rows_of(directory / "windows")
    wanted = by_key.groupby("window").sum()
    got = dict(zip(windows["since"].dt.tz_localize(None), windows["n"], strict=True))
    assert len(windows) == len(got)
    assert got == {window.tz_localize(None): n for window, n in wanted.items()}


def rows_of(path: Path) -> pd.DataFrame:
    return ds.dataset([str(f) for f in path.glob("batch=*/*.parquet")]).to_table().to_pandas()
