"""window_aggregate against Spark's own window over random data, slides and lateness."""

import os
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from penstock import UserAggregate, window_aggregate
from penstock.errors import InvalidTopology
from penstock.spark.handles.state_stores import ROCKSDB, STATE_STORE
from penstock.spark.windows import operator

pytestmark = pytest.mark.spark

AGGREGATES = {
    "n": "count", "filled": "count(v)", "total": "sum(v)", "mean": "avg(v)", "low": "min(v)",
    "high": "max(v)", "whole": "sum(i)", "whole_mean": "avg(i)", "single": "sum(f)",
    "single_high": "max(f)", "narrow": "sum(small)", "narrow_mean": "avg(small)",
    "narrow_low": "min(small)", "wide": "sum(dec)", "wide_mean": "avg(dec)",
    "wide_high": "max(dec)",
    "first_text": "min(txt)", "last_text": "max(txt)", "day": "min(day)", "yes": "max(flag)",
    "latest": "max(at)", "tiny": "min(b)", "ids": "approx_count_distinct(i)",
    "texts": "approx_count_distinct(txt)", "computed": "max(2 * i + 1)",
}  # fmt: skip
# Sums of floats depend on the order of additions, which neither side promises.
INEXACT = ("total", "mean", "single")
SCHEMA = pa.schema(
    [
        ("k", pa.string()), ("g", pa.float64()), ("v", pa.float64()), ("f", pa.float32()),
        ("i", pa.int64()), ("b", pa.int8()), ("small", pa.decimal128(7, 2)),
        ("dec", pa.decimal128(25, 3)), ("txt", pa.string()), ("day", pa.date32()),
        ("flag", pa.bool_()), ("at", pa.timestamp("us", "UTC")),
    ]
)  # fmt: skip
Rows = list[tuple[Any, ...]]


@dataclass(frozen=True)
class Case:
    """A query over files of rows, one file a batch."""

    window_ms: int
    slide_ms: int
    start_ms: int
    delay_ms: int | None
    mode: str
    by: tuple[str, ...]
    zone: str
    around_s: float  # of the first rows, since 1970
    batches: int

    @classmethod
    def of(cls, seed: int) -> "Case":
        rng = random.Random(seed)
        slide_ms = rng.choice([250, 1_000, 7_000, 10_000])
        window_ms = slide_ms * rng.randint(1, 12) + rng.choice([0, 0, slide_ms // 2, slide_ms // 4])
        mode = rng.choice(["append", "append", "update"])
        delay_ms = rng.choice([0, 1, window_ms // 4, window_ms])
        if mode == "update" and rng.random() < 0.3:
            delay_ms = None
        # A watermark begins at 1970, so that all windows before are late.
        around_s = rng.choice([1.7e9, 1.0, -3e8 if delay_ms is None else 1.7e9])
        return cls(
            window_ms, slide_ms, rng.choice([0, 0, slide_ms // 3]),
            delay_ms, mode, rng.choice([("k", "g"), ("k",), ("g",), ()]),
            rng.choice(["UTC", "Asia/Kathmandu", "America/New_York"]),
            around_s, batches=4,
        )  # fmt: skip


@pytest.fixture(scope="module", autouse=True)
def _times_in_utc(spark: SparkSession) -> None:
    spark.conf.set("spark.sql.session.timeZone", "UTC")


@pytest.fixture(autouse=True)
def _by_panes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a key too, however few windows a row falls in; but not in tumbling ones."""
    monkeypatch.setattr(operator, "FEW_COPIES", 1)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "seed" in metafunc.fixturenames:
        fixed = os.environ.get("PENSTOCK_TEST_SEED")
        long = metafunc.config.getoption("--long")
        chained = "chained" in metafunc.function.__name__
        usual = [8] if chained else [7]
        seeds = [int(fixed)] if fixed else list(range(60)) if long else usual
        metafunc.parametrize("seed", seeds)


def test_rows_equal_those_of_spark(spark: SparkSession, tmp_path: Path, seed: int) -> None:
    case = Case.of(seed)
    _write(tmp_path, case, seed)
    spark.conf.set("spark.sql.session.timeZone", case.zone)
    ours = _run(spark, tmp_path, case, lambda frame: _ours(frame, case))
    native = _run(spark, tmp_path, case, lambda frame: _native(frame, case))
    assert ours.keys() == native.keys(), case
    assert sum(map(len, native.values())) > 0, case
    for batch, rows in native.items():
        _compare(ours[batch], rows, f"{case}, batch {batch}")


def test_chained_with_more_state_rows_equal_those_of_spark(
    spark: SparkSession, tmp_path: Path, seed: int
) -> None:
    spark.conf.set(STATE_STORE, ROCKSDB)
    drawn = Case.of(seed)
    case = replace(drawn, mode="append", delay_ms=drawn.delay_ms or 0, around_s=1.7e9)
    _write(tmp_path, case, seed)

    def most(windows: DataFrame) -> DataFrame:
        span = F.window(F.window_time("window"), f"{2 * case.slide_ms} milliseconds")
        found = [F.max("n").alias("most"), F.sum("whole").alias("sum"), F.count("*").alias("keys")]
        return windows.groupBy(span.alias("span")).agg(*found)

    ours = _run(spark, tmp_path, case, lambda frame: most(_ours(frame, case, state_follows=True)))
    native = _run(spark, tmp_path, case, lambda frame: most(_native(frame, case)))
    assert sum(map(len, native.values())) > 0, case
    assert {batch: sorted(rows) for batch, rows in ours.items()} == {
        batch: sorted(rows) for batch, rows in native.items()
    }, case


def test_state_cannot_follow_without_the_store_that_it_needs(
    spark: SparkSession, tmp_path: Path
) -> None:
    case = replace(Case.of(8), mode="append", delay_ms=0, slide_ms=1_000, window_ms=4_000)
    _write(tmp_path, case, 8)
    spark.conf.unset(STATE_STORE)
    with pytest.raises(InvalidTopology, match="needs RocksDB for its state; set"):
        _run(spark, tmp_path, case, lambda frame: _ours(frame, case, state_follows=True))


def test_tumbling_windows_and_few_without_a_key_are_spark_s_own(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.undo()
    rows = spark.readStream.format("rate").load().withWatermark("timestamp", "1 second")

    def plan(window: str, by: Sequence[str] = (), **aggregates: Any) -> str:
        found = window_aggregate(
            rows, by=by, window=window, slide="2s", aggregates=aggregates or {"n": "count"}
        )
        return str(found._jdf.queryExecution().analyzed().toString())

    assert "MapInArrow" not in plan("10s")
    assert "MapInArrow" in plan("11s")
    assert "MapInArrow" not in plan("2s", by=["value"])
    assert "MapInArrow" in plan("3s", by=["value"])
    own = UserAggregate(
        columns=["value"], state="n BIGINT", returns="BIGINT", init=lambda: {"n": 0},
        update=lambda state, _: state, merge=lambda left, _: left, result=lambda state: state["n"],
    )  # fmt: skip
    assert "MapInArrow" in plan("10s", n="count", own=own)


def _ours(frame: DataFrame, case: Case, **more: Any) -> DataFrame:
    return window_aggregate(
        frame, by=case.by, window=f"{case.window_ms}ms", slide=f"{case.slide_ms}ms",
        start=f"{case.start_ms}ms" if case.start_ms else None, time="at", mode=case.mode,
        aggregates=AGGREGATES, buckets=3, **more,
    )  # fmt: skip


def _native(frame: DataFrame, case: Case) -> DataFrame:
    spans = [f"{ms} milliseconds" for ms in (case.window_ms, case.slide_ms, case.start_ms)]
    columns = [
        F.expr("count(*)" if text == "count" else text).alias(name)
        for name, text in AGGREGATES.items()
    ]
    return frame.groupBy(*case.by, F.window("at", *spans)).agg(*columns)


def _write(folder: Path, case: Case, seed: int) -> None:
    """Rows around a moment that moves on; some very late, some without a time, one file empty."""
    rng = np.random.default_rng(seed)
    for batch in range(case.batches):
        count = 0 if batch == 2 else int(rng.integers(20, 80))
        spread = case.window_ms / 1e3
        at_s = case.around_s + batch * spread / 2 + rng.normal(0, spread / 2, count)
        at_s -= np.where(rng.random(count) < 0.1, 3 * spread, 0.0)
        at_us = np.round(at_s * 1e3).astype(np.int64) * 1000 + rng.choice([0, 0, 1, 999], count)

        def some(values: list[Any], count: int = count) -> list[Any]:
            return [values[place] for place in rng.integers(0, len(values), count)]

        columns = {
            "k": some(["a", "b", "é", "", None]),
            "g": some([1.0, 0.0, -0.0, float("nan"), None]),
            "v": some([0.1, -2.75, 1e15, float("nan"), float("inf"), None, None, 3.3, 7.0]),
            "f": some([0.5, 1.25, -3.0, None]),
            "i": some([1, -5, 2**40, None, *range(100, 140)]),
            "b": some([-128, 127, None]),
            "small": some([Decimal("1.25"), Decimal("-99999.99"), None]),
            "dec": some([Decimal("1.125"), Decimal("-9999999999999999999.001"), None]),
            "txt": some(["x", "Y", "ÿ", "", None]),
            "day": pa.array(some([-8000, 0, 19000, None]), pa.int32()),
            "flag": some([True, False, None]),
            "at": pa.array(at_us, mask=rng.random(count) < 0.05),
        }
        arrays = [pa.array(columns[f.name]) for f in SCHEMA]
        table = pa.table(
            [a.cast(f.type) for a, f in zip(arrays, SCHEMA, strict=True)], schema=SCHEMA
        )
        file = folder / f"{batch}.parquet"
        pq.write_table(table, file)
        os.utime(file, (1_000 + batch, 1_000 + batch))


def _run(
    spark: SparkSession, folder: Path, case: Case, query: Callable[[DataFrame], DataFrame]
) -> dict[int, Rows]:
    probe = spark.read.parquet(str(folder / "0.parquet")).schema
    frame = spark.readStream.schema(probe).option("maxFilesPerTrigger", 1).parquet(str(folder))
    if case.delay_ms is not None:
        frame = frame.withWatermark("at", f"{case.delay_ms} milliseconds")
    found: dict[int, Rows] = {}

    def take(batch: DataFrame, batch_id: int) -> None:
        found[batch_id] = [tuple(row) for row in batch.collect()]

    stream = query(frame).writeStream.foreachBatch(take).outputMode(case.mode)
    stream.trigger(availableNow=True).start().awaitTermination()
    return found


def _compare(ours: Rows, native: Rows, where: str) -> None:
    keys = len(native[0]) - len(AGGREGATES) if native else 0
    assert len(ours) == len(native), where
    for one, other in zip(_sorted(ours, keys), _sorted(native, keys), strict=True):
        assert one[:keys] == other[:keys], where
        for name, left, right in zip(AGGREGATES, one[keys:], other[keys:], strict=True):
            if name in INEXACT and left is not None and right is not None:
                np.testing.assert_allclose(left, right, rtol=1e-9, err_msg=f"{where}: {name}")
            else:
                assert _plain(left) == _plain(right), f"{where}: {name}: {one} {other}"


def _sorted(rows: Rows, keys: int) -> Rows:
    plain = [tuple(_plain(value) for value in row[:keys]) + row[keys:] for row in rows]
    return sorted(plain, key=lambda row: tuple(map(str, row[:keys])))


def _plain(value: Any) -> Any:
    """NaN equal to itself, and zero without a sign."""
    if isinstance(value, float):
        return "NaN" if np.isnan(value) else value + 0.0
    return value


def test_windows_of_numbered_rows_against_a_batch(spark: SparkSession, tmp_path: Path) -> None:
    """Rows of three devices in no order over two files; lanes reduce them to panes."""
    rows = [(f"d{n % 3}", n // 3, float(n)) for n in np.random.default_rng(5).permutation(600)]
    for batch, part in enumerate((rows[:250], rows[250:])):
        device, seq, v = zip(*part, strict=True)
        file = tmp_path / f"{batch}.parquet"
        pq.write_table(pa.table({"device": device, "seq": seq, "v": v}), file)
        os.utime(file, (1_000 + batch, 1_000 + batch))

    def query(frame: DataFrame) -> DataFrame:
        aggregates = {"n": "count", "total": "sum(v)", "top": "max(v)"}
        return window_aggregate(
            frame, by="device", window=30, slide=20, number="seq", aggregates=aggregates
        )

    case = Case(0, 0, 0, None, "append", (), "UTC", 0.0, 2)
    found = {
        (device, window.start): (window.end, n, total, top)
        for batch in _run(spark, tmp_path, case, query).values()
        for device, window, n, total, top in batch
    }
    expected = {}
    for device in range(3):
        for start in range(0, 200 - 30 + 1, 20):
            values = [3.0 * seq + device for seq in range(start, start + 30)]
            expected[f"d{device}", start] = (start + 30, 30, sum(values), max(values))
    assert found == expected
