"""`penstock demo`: every room decides, with a reason, and its results are those of a batch."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.dataset as ds
import pytest

from penstock.cli.demo_road import demo_gantries
from penstock.control.history.digest import ROOMS

PENSTOCK = Path(sys.executable).with_name("penstock")
LIMIT_S = 400

pytestmark = [pytest.mark.spark, pytest.mark.long]


def test_every_room_decides_and_results_equal_a_batch_recomputation(tmp_path: Path) -> None:
    out = tmp_path / "demo"
    ran = subprocess.run(
        [PENSTOCK, "demo", "--out", out, "--json"], capture_output=True, text=True,
        timeout=LIMIT_S, check=False,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr[-3000:]
    answer = json.loads(ran.stdout)
    rooms = {room["room"]: room for room in answer["rooms"]}
    for room in ROOMS:
        assert rooms[room]["changes"] >= 1, room
        assert rooms[room]["last_reason"], room
    shown = subprocess.run(
        [PENSTOCK, "history", "--changes", "--history", out / "history.sqlite"],
        capture_output=True, text=True, timeout=60, check=True,
    ).stdout  # fmt: skip
    for word in ("lanes of reports", "fusion (", "processors ", "key groups move", "routing ("):
        assert word in shown, word
    _compare(out)


def _compare(out: Path) -> None:
    epoch = json.loads((out / "checkpoint/penstock/epoch.json").read_text())
    parts = [
        g.batch(0, g.rows or 0, epoch["epoch_s"]).to_pandas() for g in demo_gantries().all.values()
    ]
    rows = pd.concat(parts, ignore_index=True)
    rows["direction"] = rows["key"] % 2
    seconds = rows["at"].dt.floor("1s").dt.as_unit("s").astype("int64")
    rows["segment"] = (rows["key"] * 7 + seconds // 10) % 20
    rows["speed"] = np.where(rows["key"] % 97 == 41, 0.0, 40.0 + 80.0 * rows["value"])
    rows["since"] = rows["at"].dt.floor("5s")
    place = ["direction", "segment", "since"]
    speeds = rows.groupby([*place, "key"], as_index=False).agg(speed=("speed", "mean"))
    tolls = speeds.groupby(place, as_index=False).agg(
        volume=("key", "size"), speed=("speed", "mean")
    )
    jam = np.maximum(tolls["volume"] - 3, 0) ** 2 * 2.0
    tolls["toll"] = np.where(tolls["speed"] < 75, jam, 0.0)
    _same(_published(out / "tolls"), tolls, rows["at"].max())
    standing = rows[rows["speed"] == 0].groupby(place, as_index=False).agg(reports=("row", "size"))
    _same(_published(out / "accidents"), standing[standing["reports"] >= 2], rows["at"].max())


def _published(folder: Path) -> pd.DataFrame:
    files = [str(file) for file in sorted(folder.glob("batch=*/*.parquet"))]
    found = ds.dataset(files).to_table().to_pandas()
    found["since"] = pd.to_datetime(found["since"], utc=True)
    return found


def _same(found: pd.DataFrame, expected: pd.DataFrame, last: pd.Timestamp) -> None:
    """Every published row, and every one that is due by the last watermark but one window."""
    by = ["direction", "segment", "since"]
    assert found["since"].max() >= last - pd.Timedelta(seconds=15)
    expected = expected[expected["since"] <= found["since"].max()]
    left = found.sort_values(by).reset_index(drop=True)
    right = expected.sort_values(by).reset_index(drop=True)
    assert len(left) == len(right)
    for column in right.columns:
        if right[column].dtype == np.float64:
            np.testing.assert_allclose(left[column], right[column], rtol=1e-9, atol=1e-9)
        else:
            assert (left[column] == right[column]).all(), column
