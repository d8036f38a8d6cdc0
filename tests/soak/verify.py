"""Is everything there, and once? Recomputed from the generated rows with pandas and nothing else.

Knows nothing of batches, lanes, positions or plans: it reads what was published and compares.
"""

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.dataset as ds

from brokers import verifier
from examples.patterns import maximal_patterns
from penstock.spark.sources.dead_letters import read_letters
from penstock.workloads.generator import Generator
from soak import forms
from soak.forms import SLIDE_S, WATERMARK_S, WINDOW_S

LETTERS = "checkpoint/penstock/sources/rows/dead-letters"


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
        return f"nothing lost, nothing twice: {self.rows} rows and {self.windows} results are equal"


def verify(
    form: str, directory: Path, made: dict[str, Generator], length_s: float,
    counts: dict[str, int],
) -> Verdict:  # fmt: skip
    """Compare what came out of a leg with a recomputation; `counts` is what was written."""
    if form in forms.WRITTEN:
        return _written(directory, counts)
    if form == "loop":
        return _loop(directory / "patterns", forms.tweets(length_s))
    return _generated(form, directory, made)


def _written(directory: Path, counts: dict[str, int]) -> Verdict:
    """Every stream that is found by itself is whole, and each is in order; no row is put aside."""
    whole = {name: name.startswith("s") for name in counts}
    out, letters = directory / "out", read_letters(directory / LETTERS)
    reasons = sorted(set(letters.column("reason").to_pylist()))
    faults = tuple(f"{letters.num_rows} rows put aside: {reason}" for reason in reasons)
    try:
        verifier.verify(out, counts, whole)
    except AssertionError as fault:
        faults += (str(fault).splitlines()[0],)
    return Verdict(sum(map(len, verifier.rows_in_order(out).values())), 0, faults)


def _loop(out: Path, count: int) -> Verdict:
    """An itemset becomes maximal (+1) and ceases to be (-1) in turns; the last word is right."""
    found = published(out)
    faults = in_turns(found)
    wanted = maximal_patterns(forms.all_tweets(), count, forms.THRESHOLD)
    net = found.drop_duplicates(["bucket", "number"]).groupby("itemset")["delta"].sum()
    last = set(net.index[net != 0])
    faults += [f"{len(wanted - last)} patterns lost"] if wanted - last else []
    faults += [f"{len(last - wanted)} patterns too many"] if last - wanted else []
    return Verdict(len(found), len(last), tuple(faults[:5]))


def in_turns(found: pd.DataFrame) -> list[str]:
    """What is wrong with changes of patterns: in each bucket 1, 2, 3, each once and in order.

    Deltas alone say little: a +1 and a -1 that came twice, or were lost, make no difference.
    """
    twice = int(found.duplicated(["bucket", "number"]).sum())
    lost = int(found.groupby("bucket")["number"].max().sum()) - (len(found) - twice)
    late = _overtaken(found, "bucket", "number", 0)
    ordered = found.sort_values(["bucket", "number"])
    net = ordered.groupby("itemset")["delta"].cumsum()
    wrong = sorted(set(ordered["itemset"][~net.isin((0, 1))]))
    faults = [f"{twice} changes of patterns twice"] if twice else []
    faults += [f"{lost} changes of patterns lost"] if lost else []
    faults += [f"{late} batches with changes of patterns out of order"] if late else []
    return faults + [f"{itemset} became maximal or ceased to be twice" for itemset in wrong]


def _generated(form: str, directory: Path, made: dict[str, Generator]) -> Verdict:
    epoch = json.loads((directory / "checkpoint/penstock/epoch.json").read_text())
    expected = expected_rows(made, float(epoch["epoch_s"]))
    faults: list[str] = []
    raw = published(directory / "raw")
    columns = ["stream", "row", "key", "value", "bucket"]
    faults += _differences("rows", raw[columns], expected[columns], ["stream", "row"])
    faults += _disorder(raw)
    if form == "joined":
        pairs = published(directory / "pairs")[columns]
        faults += _differences("pairs", pairs, expected[columns], ["stream", "row"])
        return Verdict(len(raw), len(pairs), tuple(faults))
    windows = sliding_windows(expected) if form == "windowed" else expected_windows(expected)
    found = published(directory / "windows").drop(columns="batch")
    found["since"] = found["since"].dt.tz_convert("UTC").dt.as_unit("us")
    windows["since"] = windows["since"].dt.as_unit("us")
    faults += _differences("windows", found, windows, ["bucket", "since"])
    return Verdict(len(raw), len(found), tuple(faults))


def _disorder(raw: pd.DataFrame) -> list[str]:
    """Rows of a stream come out batch after batch; within a batch routes may deal them anyhow."""
    wrong = _overtaken(raw, "stream", "row", -1)
    return [f"{wrong} batches with rows of a stream out of order"] if wrong else []


def _overtaken(rows: pd.DataFrame, by: str, number: str, none: int) -> int:
    """Batches whose numbers are not above all of those before them; `none` is below all."""
    spans = rows.groupby([by, "batch"])[number].agg(["min", "max"]).reset_index()
    before = spans.groupby(by)["max"].shift(fill_value=none)
    return int((spans["min"] <= before).sum())


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


def sliding_windows(rows: pd.DataFrame) -> pd.DataFrame:
    """The same for windows that begin every SLIDE_S seconds."""
    closed = (rows["at"].max() - pd.Timedelta(seconds=WATERMARK_S)).floor("1ms")
    parts = []
    for back_s in range(0, WINDOW_S, SLIDE_S):
        since = rows["at"].dt.floor(f"{SLIDE_S}s") - pd.Timedelta(seconds=back_s)
        parts.append(rows.assign(since=since)[since + pd.Timedelta(seconds=WINDOW_S) <= closed])
    return pd.concat(parts).groupby(["bucket", "since"], as_index=False).agg(
        n=("row", "size"), total=("row", "sum")
    )  # fmt: skip


def published(folder: Path) -> pd.DataFrame:
    """All rows in the order of their batches, with the number of each one's batch."""
    parts = []
    for batch in sorted(folder.glob("batch=*"), key=lambda path: int(path.name[6:])):
        files = [str(file) for file in sorted(batch.glob("*.parquet"))]
        parts.append(ds.dataset(files).to_table().to_pandas().assign(batch=int(batch.name[6:])))
    found = pd.concat(parts, ignore_index=True)
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
