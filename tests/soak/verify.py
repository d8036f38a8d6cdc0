"""Is everything there, and once? Recomputed from the generated rows with pandas and nothing else.

Knows nothing of batches, lanes, positions or plans: it reads what was published and compares.
"""

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.dataset as ds

from penstock.workloads.generator import Generator
from soak.program import WATERMARK_S, WINDOW_S


@dataclass(frozen=True)
class Verdict:
    """What was compared, and what is wrong with it: nothing, if there is no fault."""

    rows: int
    windows: int
    faults: tuple[str, ...]

    def line(self) -> str:
        """For a person."""
        if self.faults:
            return f"FAILED: {'; '.join(self.faults)}"
        return f"nothing lost, nothing twice: {self.rows} rows and {self.windows} windows are equal"


def verify(directory: Path, made: dict[str, Generator]) -> Verdict:
    """Compare both outputs with a recomputation."""
    epoch = json.loads((directory / "checkpoint/penstock/epoch.json").read_text())
    expected = expected_rows(made, float(epoch["epoch_s"]))
    faults: list[str] = []
    raw = _published(directory / "raw")
    columns = ["stream", "row", "key", "value", "bucket"]
    faults += _differences("rows", raw[columns], expected[columns], ["stream", "row"])
    windows = expected_windows(expected)
    published = _published(directory / "windows")
    published["since"] = published["since"].dt.tz_convert("UTC").dt.as_unit("us")
    windows["since"] = windows["since"].dt.as_unit("us")
    faults += _differences("windows", published, windows, ["bucket", "since"])
    return Verdict(len(raw), len(published), tuple(faults))


def expected_rows(made: dict[str, Generator], epoch_s: float) -> pd.DataFrame:
    parts = []
    for name, generator in made.items():
        part = generator.batch(0, generator.rows or 0, epoch_s).to_pandas()
        part["stream"] = name
        parts.append(part)
    rows = pd.concat(parts, ignore_index=True)
    rows["bucket"] = rows["key"] % 8
    return rows


def expected_windows(rows: pd.DataFrame) -> pd.DataFrame:
    """Windows that the last watermark has closed."""
    closed = rows["at"].max() - pd.Timedelta(seconds=WATERMARK_S)
    since = rows["at"].dt.floor(f"{WINDOW_S}s")
    rows = rows.assign(since=since)[since + pd.Timedelta(seconds=WINDOW_S) <= closed.floor("1ms")]
    by_key = rows.groupby(["bucket", "since", "key"], as_index=False).agg(
        n=("row", "size"), total=("row", "sum")
    )
    return by_key.groupby(["bucket", "since"], as_index=False).agg(
        n=("n", "sum"), keys=("n", "size"), total=("total", "sum")
    )


def _published(folder: Path) -> pd.DataFrame:
    files = [str(file) for file in sorted(folder.glob("batch=*/*.parquet"))]
    table = ds.dataset(files).to_table()
    found = table.to_pandas()
    for column in found.select_dtypes("datetime"):
        found[column] = found[column].dt.tz_localize("UTC")
    return found


def _differences(
    what: str, found: pd.DataFrame, expected: pd.DataFrame, by: list[str]
) -> list[str]:
    twice = int(found.duplicated(by).sum())
    faults = [f"{twice} {what} twice"] if twice else []
    merged = found.drop_duplicates(by).merge(
        expected, on=by, how="outer", suffixes=("", "_expected"), indicator=True
    )
    lost, foreign = (int((merged["_merge"] == side).sum()) for side in ("right_only", "left_only"))
    faults += [f"{lost} {what} lost"] if lost else []
    faults += [f"{foreign} {what} that should not be there"] if foreign else []
    both = merged[merged["_merge"] == "both"]
    for column in expected.columns.difference(by):
        wrong = int(np.sum(both[column].to_numpy() != both[f"{column}_expected"].to_numpy()))
        faults += [f"{wrong} {what} with another {column}"] if wrong else []
    return faults
