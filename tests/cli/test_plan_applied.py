"""`penstock run --plan auto --apply`, as typed: measured, proposed, stopped, gone on otherwise."""

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow.dataset as ds
import pytest

from penstock import Generator
from penstock.workloads.profiles import constant

pytestmark = [pytest.mark.spark, pytest.mark.long]  # three starts of Spark

PENSTOCK = Path(sys.executable).with_name("penstock")
ROWS, RATE_PER_S = 90_000, 1_500.0
TOPOLOGY = f"""
from penstock import Files, Generator, Topology, constant

made = Topology("steps", max_latency="20s")
made.source("rows", Generator(constant({RATE_PER_S}), keys=400, seed=9, rows={ROWS}))
made.add("named", "SELECT *, concat('k', key) AS name, key % 9 AS part FROM rows", "rows")
made.add("few", "SELECT * FROM named WHERE value < 0.4", "named")


@made.operator("few")
def by_key(few):
    timed = few.withWatermark("at", "1 second")
    return timed.sparkSession.sql(
        "SELECT name, part, window, count(*) AS n FROM {{timed}} "
        "GROUP BY name, part, window(at, '1 second')", timed=timed,
    )


made.add(
    "by_part",
    "SELECT part, window(window, '1 second').start AS since, sum(n) AS n, count(*) AS names "
    "FROM by_key GROUP BY part, window(window, '1 second')",
    "by_key",
)
made.sink("parts", "by_part", Files("parts"))
"""


def penstock(directory: Path, *words: str) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [PENSTOCK, *words], cwd=directory, capture_output=True, text=True, timeout=240, check=False
    )
    assert done.returncode == 0, done.stderr
    return done


def expected(directory: Path) -> Counter[Any]:
    epoch_s = json.loads((directory / "c/penstock/epoch.json").read_text())["epoch_s"]
    stream = Generator(constant(RATE_PER_S), keys=400, seed=9, rows=ROWS)
    rows = stream.batch(0, ROWS, epoch_s).to_pandas()
    rows = rows[rows["value"] < 0.4].assign(part=rows["key"] % 9, since=rows["at"].dt.floor("1s"))
    closed = (rows["at"].max() - pd.Timedelta(seconds=1)).floor("1ms")
    rows = rows[rows["since"] + pd.Timedelta(seconds=1) <= closed]
    found = rows.groupby(["part", "since"]).agg(n=("key", "size"), names=("key", "nunique"))
    return Counter(
        {(int(p), s.timestamp(), int(r.n), int(r.names)): 1 for (p, s), r in found.iterrows()}
    )


def written(directory: Path) -> Counter[Any]:
    rows = ds.dataset(directory / "parts", format="parquet").to_table().to_pylist()
    return Counter((r["part"], r["since"].timestamp(), r["n"], r["names"]) for r in rows)


def test_a_better_plan_is_measured_proposed_and_applied(tmp_path: Path) -> None:
    (tmp_path / "steps.py").write_text(TOPOLOGY, encoding="utf-8")
    words = (
        "run",
        "steps.py:made",
        "--checkpoint",
        "c",
        "--period",
        "1s",
        "--policy",
        "static",
        "--key-groups",
        "2",
    )
    first = penstock(tmp_path, *words, "--plan", "auto", "--for", "30s")
    assert "fuse" not in first.stderr
    shown = penstock(tmp_path, "history", "--show", "elsewhere", "--json").stdout
    decisions = {d["room"]: d for d in json.loads(shown)["elsewhere"]}
    assert "by_key + by_part by (part)" in decisions["fusion"]["what"]
    assert decisions["order"]["what"] == "few > named"
    assert decisions["order"]["numbers"]["expected_gain"] > 0.05
    between = sum(row[2] for row in written(tmp_path).elements())
    assert 0 < between < ROWS
    second = penstock(tmp_path, *words, "--plan", "auto", "--apply")
    assert "fusion: fuse by_key + by_part by (part) (expected gain" in second.stderr
    assert "order: few > named (expected gain" in second.stderr
    assert written(tmp_path) == expected(tmp_path)
    record = json.loads((tmp_path / "c/penstock/plan.json").read_text())
    assert (record["orders"], record["directories"]) == (
        [["few", "named"]],
        {"steps": "steps.plan1"},
    )
