"""kill -9 of a fused query, before and after its plan was changed: the rows of a batch, once."""

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pyarrow.dataset as ds
import pytest

from spark import diamond_run, fused_run

pytestmark = pytest.mark.spark

LIMIT_S = 200
TESTS = Path(__file__).parents[1]  # where the programs are found as modules


def run(
    directory: Path, plan: str, batches: int, kill_at: int | None = None,
    program: ModuleType = fused_run,
) -> list[str]:  # fmt: skip
    """The program's lines; it is killed as soon as it has told of so many batches."""
    command = [sys.executable, "-m", program.__name__, str(directory), plan, str(batches)]
    lines: list[str] = []
    batches_done = 0
    with (directory / "errors.txt").open("ab") as errors:
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=errors, text=True, cwd=TESTS
        )
        assert process.stdout is not None
        for line in process.stdout:
            lines.append(line.strip())
            batches_done += line.startswith("batch")
            if batches_done == kill_at:
                process.kill()
        process.wait(LIMIT_S)
        process.stdout.close()
    if kill_at is None:
        assert lines[-1:] == ["finished"], (lines, (directory / "errors.txt").read_text()[-2000:])
    return lines


def expected(directory: Path) -> Counter[Any]:
    epoch = json.loads((directory / "checkpoint/penstock/epoch.json").read_text())["epoch_s"]
    rows = fused_run.STREAM.batch(0, fused_run.ROWS, epoch).to_pandas()
    rows = rows.assign(bucket=rows["key"] % 7, since=rows["at"].dt.floor("1s"))
    closed = (rows["at"].max() - np.timedelta64(1, "s")).floor("1ms")
    rows = rows[rows["since"] + np.timedelta64(1, "s") <= closed]
    found = rows.groupby(["bucket", "since"]).agg(n=("key", "size"), keys=("key", "nunique"))
    return Counter(
        {(int(b), s.timestamp(), int(r.n), int(r["keys"])): 1 for (b, s), r in found.iterrows()}
    )


def written(directory: Path) -> Counter[Any]:
    rows = ds.dataset(directory / "buckets", format="parquet").to_table().to_pylist()
    return Counter((r["bucket"], r["since"].timestamp(), r["n"], r["keys"]) for r in rows)


def plan_file(
    directory: Path, operators: tuple[str, ...] = ("by_key", "by_bucket"),
    key: tuple[str, ...] = ("bucket",),
) -> str:  # fmt: skip
    plan = directory / "plan.json"
    group = {"operators": operators, "key": key}
    plan.write_text(json.dumps({"components": [group]}))
    return str(plan)


def goes_on(directory: Path) -> None:
    """Run to the end with the plan that the checkpoint knows, and compare."""
    lines = run(directory, "-", batches=0)
    assert "fused by_bucket + by_key" in lines
    assert written(directory) == expected(directory)


@pytest.mark.long  # the soak kills a fused component in every run
def test_a_fused_query_survives_kill_9(tmp_path: Path) -> None:
    run(tmp_path, plan_file(tmp_path), batches=0, kill_at=2)
    goes_on(tmp_path)


@pytest.mark.long  # three starts of Spark
def test_a_plan_that_was_applied_survives_kill_9(tmp_path: Path) -> None:
    run(tmp_path, "none", batches=3)
    lines = run(tmp_path, plan_file(tmp_path), batches=0, kill_at=2)
    assert "fused by_bucket + by_key" in lines
    goes_on(tmp_path)


@pytest.mark.long  # three starts of Spark
def test_a_fused_join_survives_kill_9(tmp_path: Path) -> None:
    plan = plan_file(tmp_path, diamond_run.MEMBERS, diamond_run.KEY)
    run(tmp_path, "none", batches=3, program=diamond_run)
    lines = run(tmp_path, plan, batches=0, kill_at=2, program=diamond_run)
    assert "fused average + toll + volume" in lines
    lines = run(tmp_path, "-", batches=0, program=diamond_run)
    assert "fused average + toll + volume" in lines
    rows = ds.dataset(tmp_path / "tolls", format="parquet").to_table().to_pylist()
    epoch = json.loads((tmp_path / "checkpoint/penstock/epoch.json").read_text())["epoch_s"]
    assert diamond_run.tolls(rows) == diamond_run.expected(epoch)
