"""Rows that are shed: the same whenever they are drawn, as many as was ordered, independent."""

import json
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql.types import (
    DoubleType,
    IntegerType,
    LongType,
    StructField,
    StructType,
    TimestampType,
)

from penstock.model.sources import Streams
from penstock.spark.routes.reading import RoutedReading
from penstock.spark.sources import reader as reader_module
from penstock.spark.sources.backends.backend import Chunk, Positions, Ranges
from penstock.spark.sources.backends.redis_ids import packed
from penstock.spark.sources.batch_choice import (
    BatchChoices,
    Bools,
    dropped_of_ranges,
    dropped_rows,
    kept,
    seed_of,
    shed_rows_at,
)
from penstock.spark.sources.control import ControlFile
from penstock.spark.sources.entry import Batch, no_one
from penstock.spark.sources.generator_source import GeneratorReader
from penstock.spark.sources.reader import PenstockReader
from penstock.spark.sources.settings import settings_of
from penstock.workloads.generator import Generator
from penstock.workloads.profiles import steps

NO_ROWS = pa.RecordBatch.from_pydict({})


@pytest.mark.parametrize("share", [0.05, 0.2, 0.9])
def test_the_share_is_kept_and_the_sample_is_the_same_however_it_is_cut(share: float) -> None:
    seed = seed_of("reports")
    whole = kept(1_000, 200_000, share, seed)
    assert 1 - whole.mean() == pytest.approx(share, abs=0.005)
    parts = [kept(1_000 + k, 10_000, share, seed) for k in range(0, 200_000, 10_000)]
    assert (np.concatenate(parts) == whole).all()
    assert dropped_rows(1_000, 200_000, share, seed) == (~whole).sum()
    other = kept(1_000, 200_000, share, seed_of("others"))
    assert np.corrcoef(whole, other)[0, 1] == pytest.approx(0, abs=0.02)


def test_a_larger_share_drops_what_a_smaller_one_did_and_more() -> None:
    little, much = kept(0, 10_000, 0.1, 7), kept(0, 10_000, 0.3, 7)
    assert not (much & ~little).any()


def test_rows_of_many_streams_are_counted_as_they_are_dropped() -> None:
    first, counts = np.array([0, 50, 7]), np.array([300, 0, 1_000])
    seeds = np.array([seed_of(name) for name in "abc"])
    each = [
        dropped_rows(int(f), int(n), 0.2, int(s))
        for f, n, s in zip(first, counts, seeds, strict=True)
    ]
    assert dropped_of_ranges(first, counts, 0.2, seeds) == sum(each)


def sample_before(first: int, count: int, share: float, seed: int) -> Bools:
    """How the sample was drawn when places had to be below 2^63: checkpoints rest on it."""
    place = np.arange(first, first + count, dtype=np.uint64)
    with np.errstate(over="ignore"):
        mixed = place * np.uint64(0x9E3779B97F4A7C15)
        mixed = mixed + np.uint64(seed) * np.uint64(0xD1342543DE82EF95)
        mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        mixed = mixed ^ (mixed >> np.uint64(31))
    return (mixed >> np.uint64(11)) * 2.0**-53 >= share


@given(st.integers(0, 2**62), st.integers(0, 500), st.floats(0.01, 0.99), st.integers(0, 2**32 - 1))
def test_places_that_could_be_drawn_before_give_the_same_sample(
    first: int, count: int, share: float, seed: int
) -> None:
    assert (kept(first, count, share, seed) == sample_before(first, count, share, seed)).all()


@given(
    st.integers(-(2**63), 2**63 - 1),
    st.integers(-(2**63), 2**63 - 1),
    st.lists(st.integers(0, 300), min_size=1, max_size=4),
    st.floats(0.01, 0.99),
    st.text(),
)
def test_rows_of_any_position_are_shed_alike_where_they_are_counted_and_where_they_are_read(
    major: int, minor: int, counts: list[int], share: float, name: str
) -> None:
    """The log counts a batch as a whole; a task reads it in chunks, and again after a failure."""
    start = Positions(np.array([major]), np.array([minor]))
    rows = sum(counts)
    batch = Batch(1, np.array([0]), np.array([0]), start, start, np.array([rows]), no_one())
    ranges = Ranges([name], start, start, np.array([rows]))

    def task() -> list[bool]:
        place = reader_module._first_places(ranges.start).tolist()
        chunks = [Chunk(NO_ROWS, np.array([0]), np.array([count])) for count in counts]
        return [
            bool(kept_row)
            for chunk in chunks
            for kept_row in reader_module._kept(chunk, ranges, place, share)
        ]

    read = task()
    assert read == task()
    assert len(read) == rows
    assert read.count(False) == reader_module._dropped(batch, [name], share)


@pytest.mark.parametrize("hour", range(24))
def test_redis_ids_of_every_hour_can_be_shed(hour: int) -> None:
    ms = 1_763_337_600_000 + 3_600_000 * hour
    start = packed(np.array([ms]), np.array([5]), np.array([0]))
    (first,) = reader_module._first_places(start)
    assert len(kept(int(first), 100, 0.5, seed_of("cabs"))) == 100


def reader(orders: Path, forms: tuple[str, ...] = ()) -> GeneratorReader:
    stream = Generator(steps([(1, 1_000)]), keys=10, rows=2_000)
    choices = BatchChoices("reports", forms, ControlFile(orders))
    return GeneratorReader(stream, 0.0, "reports", RoutedReading("reports"), choices)


def test_a_batch_keeps_the_choice_of_its_offset_whatever_is_ordered_later(tmp_path: Path) -> None:
    file = tmp_path / "control.json"
    one = reader(file, ("lookup",))
    start = one.initialOffset()
    first = one.latestOffset(start, one.getDefaultReadLimit())
    assert "resort" not in first  # nothing was ever ordered, so offsets are as they always were
    ControlFile(file).order(shed=0.25, cheaper=["lookup", "of another source"])
    end = one.latestOffset(start, one.getDefaultReadLimit())
    ControlFile(file).order(shed=0.0, cheaper=[])
    again = reader(file, ("lookup",))  # as after a failure
    rows = [
        batch
        for part in again.partitions(start, end)
        for batch in again.read(part)
    ]  # fmt: skip
    numbers = np.concatenate([batch.column("row").to_numpy() for batch in rows])
    assert len(numbers) + shed_rows_at(end) == 2_000
    assert (np.flatnonzero(kept(0, 2_000, 0.25, seed_of("reports"))) == numbers).all()
    assert {form for b in rows for form in b.column("__penstock_forms_reports").to_pylist()} == {1}


def test_rows_shed_add_up_over_batches(tmp_path: Path) -> None:
    file = tmp_path / "control.json"
    ControlFile(file).order(shed=0.5)
    stream = Generator(steps([(1, 1_000)]), keys=10, rows=3_000, max_rows=1_000)
    choices = BatchChoices("reports", (), ControlFile(file))
    one = GeneratorReader(stream, 0.0, "reports", RoutedReading("reports"), choices)
    offset, read = one.initialOffset(), 0
    for share in (0.5, 0.0, 0.1):
        ControlFile(file).order(shed=share)
        end = one.latestOffset(offset, one.getDefaultReadLimit())
        parts = one.partitions(offset, end)
        read += sum(batch.num_rows for part in parts for batch in one.read(part))
        offset = end
    assert read + shed_rows_at(offset) == 3_000


def test_a_batch_waits_for_the_interval_that_was_ordered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    slept_s: list[float] = []
    monkeypatch.setattr(time, "sleep", slept_s.append)
    file = tmp_path / "control.json"
    one = reader(file)
    start = one.initialOffset()
    end = one.latestOffset(start, one.getDefaultReadLimit())
    assert end != start
    ControlFile(file).order(interval_s=1e12)
    assert one.latestOffset(start, one.getDefaultReadLimit()) == start
    assert slept_s == [0.2]
    ControlFile(file).order(interval_s=0.0)
    assert one.latestOffset(start, one.getDefaultReadLimit()) == end


def test_many_streams_shed_alike_whoever_reads_them_and_every_row_is_counted(
    tmp_path: Path,
) -> None:
    file = tmp_path / "control.json"
    made = {f"s{n}": Generator(steps([(1, 100)]), keys=3, seed=n, rows=70 + n) for n in range(9)}
    text = settings_of(Streams(generators=made), "many", tmp_path / "many", 0.0).to_json()
    kinds = (LongType(), LongType(), DoubleType(), TimestampType(), IntegerType())
    names = ("row", "key", "value", "at", "__penstock_forms_many")
    schema = StructType([StructField(*pair) for pair in zip(names, kinds, strict=True)])

    def reader() -> PenstockReader:
        choices = BatchChoices("many", ("lookup",), ControlFile(file))
        return PenstockReader(text, schema, RoutedReading("many"), choices)

    ControlFile(file).order(shed=0.4, cheaper=["lookup"])
    one = reader()
    start = one.initialOffset()
    end = json.loads(json.dumps(one.latestOffset(start, one.getDefaultReadLimit())))
    ControlFile(file).order(shed=0.0, cheaper=[])
    read = []
    for _ in range(2):  # as it is, and as after a failure
        rows = [b for part in one.partitions(start, end) for b in one.read(part)]
        read.append(sorted(str(row) for batch in rows for row in batch.to_pylist()))
        assert {f for b in rows for f in b.column("__penstock_forms_many").to_pylist()} == {1}
        one.stop()
        one = reader()
    assert read[0] == read[1]
    assert len(read[0]) + shed_rows_at(end) == sum(range(70, 79))
    assert shed_rows_at(end) == pytest.approx(0.4 * sum(range(70, 79)), rel=0.15)
