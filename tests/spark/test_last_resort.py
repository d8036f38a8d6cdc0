"""The last resort on Spark: decided by the loop, carried out between batches, exact to a row."""

import json
import os
import random
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.dataset as ds
import pytest

from penstock.control.history.store import HistoryStore
from penstock.spark.sources.batch_choice import kept, seed_of
from spark import overloaded_run
from spark.killed_program import Program

pytestmark = pytest.mark.spark


@pytest.mark.long
def test_kept_and_shed_rows_are_all_rows_across_kill_9(
    tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    seed = int(os.environ.get("PENSTOCK_TEST_SEED", random.randrange(2**32)))
    print(f"PENSTOCK_TEST_SEED={seed}")
    moments = random.Random(seed)
    program = Program(overloaded_run.__file__, tmp_path, "local[2]")
    assert program.await_line("did cheaper") == "did cheaper form -> scored True", program.errors()
    assert program.await_line("did shed").endswith("True"), program.errors()
    assert "rows shed" in program.await_line("decided"), program.errors()
    time.sleep(moments.uniform(0.0, 0.5))  # the random moment itself, no synchronisation
    program.kill()
    for _ in range(4 if request.config.getoption("--long") else 0):
        program = Program(overloaded_run.__file__, tmp_path, "local[2]")
        program.await_line("batch", "finished")
        time.sleep(moments.uniform(0.0, 0.5))
        program.kill()
    last = Program(overloaded_run.__file__, tmp_path, "local[2]", "once")
    assert last.await_line("finished") == "finished", last.errors()
    last.close()
    _compare(tmp_path)
    _look_at_history(tmp_path)


def _compare(directory: Path) -> None:
    """Rows and windows equal a batch recomputation over the rows that offsets say were kept."""
    stream, rows = overloaded_run.STREAM, overloaded_run.ROWS
    folder = directory / "checkpoint/penstock"
    epoch_s = json.loads((folder / "epoch.json").read_text())["epoch_s"]
    whole = stream.batch(0, rows, epoch_s).to_pandas()
    parts, start, shed = [], 0, 0
    for offset in _offsets(directory):
        choice = offset.get("resort", {"cheaper": [], "shed": 0.0})
        mask = kept(start, offset["row"] - start, choice["shed"], seed_of("rows"))
        part = whole[start : offset["row"]][mask].copy()
        part["form"] = "cheaper" if choice["cheaper"] else "full"
        parts.append(part)
        start, shed = offset["row"], offset.get("resort", {}).get("shed_rows", shed)
    expected = pd.concat(parts)
    assert start == rows
    assert shed > 0
    assert len(expected) + shed == rows
    assert set(expected["form"]) == {"full", "cheaper"}

    found = _output(directory / "raw").sort_values("row").reset_index(drop=True)
    expected = expected.sort_values("row").reset_index(drop=True)
    assert found["row"].tolist() == expected["row"].tolist()
    assert found["form"].tolist() == expected["form"].tolist()

    expected["since"] = expected["at"].dt.floor("1s")
    closed = expected["at"].max() - pd.Timedelta(seconds=overloaded_run.WATERMARK_S)
    over = expected[expected["since"] + pd.Timedelta(seconds=1) <= closed.floor("1ms")]
    sums = over.groupby(["since", "key"]).agg(n=("row", "size"), total=("value", "sum"))
    windows = _output(directory / "windows").set_index(["since", "key"]).sort_index()
    assert windows["n"].tolist() == sums["n"].tolist()
    np.testing.assert_allclose(windows["total"], sums["total"], rtol=1e-9)


def _offsets(directory: Path) -> list[dict[str, Any]]:
    logs = [log for log in (directory / "checkpoint").rglob("offsets") if log.is_dir()]
    files = sorted((f for f in logs[0].iterdir() if f.name.isdigit()), key=lambda f: int(f.name))
    found = [json.loads(file.read_text().splitlines()[2]) for file in files]
    return [offset for n, offset in enumerate(found) if n == 0 or offset != found[n - 1]]


def _look_at_history(directory: Path) -> None:
    with HistoryStore(str(directory / "history.sqlite"), create=False) as store:
        decisions = store.read_room_decisions(1)
        last_resorts = [one for one in decisions if one.room == "last resort"]
        done = [str(a.outcome.action) for a in store.read_actions(1)]
    counted = [one for one in decisions if one.room == "shedding"]
    assert counted[-1].numbers["so_far"] == sum(one.numbers["shed_rows"] for one in counted) > 0
    assert last_resorts[0].what == "cheaper form -> scored"
    assert "processors in use" in last_resorts[0].reasons[0]
    assert last_resorts[1].numbers["shed"] <= 0.3
    assert last_resorts[1].numbers["error_of_count"] > 0
    assert done[:2] == [one.what for one in last_resorts[:2]]


def _output(path: Path) -> pd.DataFrame:
    found = ds.dataset([str(f) for f in path.glob("batch=*/*.parquet")]).to_table().to_pandas()
    for column in found.select_dtypes("datetime"):
        found[column] = found[column].dt.tz_localize("UTC")
    return found
