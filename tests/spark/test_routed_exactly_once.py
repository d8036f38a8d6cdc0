"""Routes that change every batch under kill -9: results equal a batch recomputation.

And every batch, repeated or not, was routed by the table that its offset names.
"""

import json
import os
import random
import signal
import time
from pathlib import Path

import pandas as pd
import pyarrow.dataset as ds
import pytest

from penstock.spark.routes.reading import RoutedReading
from penstock.spark.sources.generator_source import GeneratorReader
from spark import routed_run
from spark.killed_program import Program, await_executors, finish

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("no_session")]


@pytest.fixture
def moments(request: pytest.FixtureRequest) -> random.Random:
    """A new seed each time, printed when the test fails, or PENSTOCK_TEST_SEED."""
    chosen = int(os.environ.get("PENSTOCK_TEST_SEED", random.randrange(2**32)))
    print(f"PENSTOCK_TEST_SEED={chosen}")
    return random.Random(chosen)


@pytest.mark.long  # the soak kills a driver whose source is routed in every run
def test_killed_while_routes_change(
    tmp_path: Path, moments: random.Random, request: pytest.FixtureRequest
) -> None:
    long = request.config.getoption("--long")
    rows = 25_000 if long else 7_000  # enough for all the kills; what is left is read at the end
    if long:  # the soak kills an executor in every run
        program = Program(routed_run.__file__, tmp_path, "embedded", str(rows))
        _await_batches(program, moments)
        os.kill(moments.choice(await_executors(program.process.pid)), signal.SIGKILL)
        _await_batches(program, moments)
        program.kill()
    for _ in range(10 if long else 1):
        program = Program(routed_run.__file__, tmp_path, "local[2]", str(rows))
        _await_batches(program, moments)
        program.kill()
    finish(routed_run, tmp_path, "local[2]", rows)
    _compare_rows(tmp_path, rows)
    _compare_routes(tmp_path, rows)


def _await_batches(program: Program, moments: random.Random) -> None:
    for _ in range(moments.randint(1, 2)):
        assert program.await_line("batch", "finished").startswith("batch"), program.errors()
    time.sleep(moments.uniform(0.0, 0.8))  # the random moment itself, no synchronisation


def _compare_rows(directory: Path, count: int) -> None:
    rows = routed_run.stream(count).batch(0, count, _epoch_s(directory)).to_pandas()
    raw = _output(directory / "raw").sort_values("row").reset_index(drop=True)
    for column in ("row", "key", "value", "at"):
        assert raw[column].equals(rows[column]), column
    rows["since"] = rows["at"].dt.floor("1s")
    closed = (rows["at"].max() - pd.Timedelta(seconds=1)).floor("1ms")
    rows = rows[rows["since"] + pd.Timedelta(seconds=1) <= closed]
    expected = rows.groupby(["key", "since"]).agg(n=("row", "size"), total=("row", "sum"))
    found = _output(directory / "keys").set_index(["key", "since"]).sort_index()
    assert found[["n", "total"]].equals(expected.sort_index())


def _compare_routes(directory: Path, count: int) -> None:
    """Each batch anew: its offset's table, its lanes, its rows, against the tasks it ran in."""
    epoch_s = _epoch_s(directory)
    raw = _output(directory / "raw").set_index("row")["task"].sort_index()
    folder = directory / "checkpoint/penstock/routes/rows"
    options = {"route": routed_run.ROUTE.to_json(), "routes_at": str(folder)}
    routed = RoutedReading.of(options, "rows")
    reader = GeneratorReader(routed_run.stream(count), epoch_s, "rows", routed)
    start, tables = reader.initialOffset(), set()
    offsets = directory / "checkpoint/queries/routed/offsets"
    for number in sorted(int(file.name) for file in offsets.glob("[0-9]*")):
        end = json.loads((offsets / str(number)).read_text().splitlines()[2])
        for part in reader.partitions(start, end):
            for batch in reader.read(part):
                expected = batch.column("__route_rows").to_pylist()
                assert raw.loc[batch.column("row").to_pylist()].tolist() == expected, number
        tables.add(end["routes"])
        start = end
    assert start["row"] == count
    assert len(tables) >= count // routed_run.ROWS_PER_BATCH // 2  # routes did change


def _epoch_s(directory: Path) -> float:
    text = (directory / "checkpoint/penstock/epoch.json").read_text()
    return float(json.loads(text)["epoch_s"])


def _output(path: Path) -> pd.DataFrame:
    files = [str(file) for file in path.glob("batch=*/*.parquet")]
    found = ds.dataset(files).to_table().to_pandas()
    for column in found.select_dtypes("datetime"):
        found[column] = found[column].dt.tz_localize("UTC")
    return found
