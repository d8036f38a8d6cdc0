"""The verifier of the soak finds what it is there to find."""

import json
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

from penstock.spark.sources.backends.backend import Malformed
from penstock.spark.sources.dead_letters import letter_file, write_letters
from soak import load, verify
from soak.verify import Verdict

EPOCH_S = 1_750_000_000.3
TWENTY_S = 20.0 - load.TAIL_S
STREAMS = dict(list(load.streams(3, TWENTY_S).items())[:2])


def published(
    directory: Path,
    rows: Callable[[pd.DataFrame], pd.DataFrame] = lambda frame: frame,
    windows: Callable[[pd.DataFrame], pd.DataFrame] = lambda frame: frame,
) -> Verdict:
    """The verdict on outputs as they should be, changed in some way."""
    (directory / "checkpoint/penstock").mkdir(parents=True)
    (directory / "checkpoint/penstock/epoch.json").write_text(json.dumps({"epoch_s": EPOCH_S}))
    expected = verify.expected_rows(STREAMS, EPOCH_S)
    for name, frame in (
        ("raw", rows(expected)),
        ("windows", windows(verify.expected_windows(expected))),
    ):
        (directory / name / "batch=0").mkdir(parents=True)
        frame.to_parquet(directory / name / "batch=0" / "part.parquet")
    return verify.verify("plain", directory, STREAMS, 0.0, {})


def test_outputs_as_they_should_be_have_no_fault(tmp_path: Path) -> None:
    verdict = published(tmp_path)
    assert verdict.faults == ()
    assert verdict.rows == sum(generator.rows or 0 for generator in STREAMS.values())
    assert verdict.windows > 20
    assert verdict.line().startswith("nothing lost, nothing twice")


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        (lambda rows: rows.iloc[1:], "1 rows lost"),
        (lambda rows: pd.concat([rows, rows.iloc[:2]]), "2 rows twice"),
        (lambda rows: rows.assign(value=rows["value"].where(rows.index > 0, 7.0)),
         "1 rows with another value"),
        (lambda rows: rows.assign(row=rows["row"].where(rows.index > 0, 10**9)),
         "1 rows that should not be there"),
    ],
)  # fmt: skip
def test_faults_of_rows_are_counted(
    tmp_path: Path, change: Callable[[pd.DataFrame], pd.DataFrame], fault: str
) -> None:
    verdict = published(tmp_path, rows=change)
    assert fault in verdict.faults
    assert verdict.line().startswith("FAILED")


def test_faults_of_windows_are_counted(tmp_path: Path) -> None:
    verdict = published(tmp_path, windows=lambda frame: frame.iloc[3:].assign(n=frame["n"] + 1))
    assert "3 windows lost" in verdict.faults
    assert any(fault.endswith("windows with another n") for fault in verdict.faults)


def test_rows_that_were_put_aside_are_a_fault(tmp_path: Path) -> None:
    (tmp_path / "out/batch=0").mkdir(parents=True)
    rows = pd.DataFrame({"stream": ["s0"], "seq": [0]})
    rows.to_parquet(tmp_path / "out/batch=0/part.parquet")
    assert verify.verify("files", tmp_path, {}, 0.0, {"s0": 1}).faults == ()
    folder = tmp_path / verify.LETTERS
    folder.mkdir(parents=True)
    write_letters(letter_file(folder, 0, 1, 2), [Malformed("s0", "7", "no thread", b"{}")])
    assert verify.verify("files", tmp_path, {}, 0.0, {"s0": 1}).faults == (
        "1 rows put aside: no thread",
    )
