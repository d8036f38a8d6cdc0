"""What the sinks of a stateful topology hold, beside a batch over the same generated rows.

The topology is that of stateful_run, or one with the same operators.
"""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.dataset as ds

from penstock.workloads.generator import Generator


def compare(directory: Path, stream: Generator, watermark_s: float) -> None:
    """Rows of all three sinks, whose stream is worked off."""
    assert stream.rows is not None
    epoch_s = json.loads((directory / "checkpoint/penstock/epoch.json").read_text())["epoch_s"]
    rows = stream.batch(0, stream.rows, epoch_s).to_pandas()
    rows["doubled"] = rows["value"] * 2
    _same(_output(directory / "raw"), rows, ["row"])

    rows["window"] = rows["at"].dt.floor("1s")
    closed = rows["at"].max() - pd.Timedelta(seconds=watermark_s)
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
