"""Panes and windows without Spark: what lane and step make of rows, against plain loops."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.errors import PenstockError
from penstock.model.aggregates import UserAggregate
from penstock.spark.windows import results
from penstock.spark.windows.kernels import Extreme, FloatSum, IntSum, Rows
from penstock.spark.windows.map_side import PaneLane, RowLane
from penstock.spark.windows.numbered_step import NumberedStep
from penstock.spark.windows.operator import bucket_values, spark_hash
from penstock.spark.windows.pane_step import PaneStep
from penstock.spark.windows.reducing import over_ranges
from penstock.spark.windows.row_step import RowStep
from penstock.spark.windows.shape import WindowShape
from penstock.spark.windows.user import UserKernel, Where

KERNELS = (Rows(), Rows("v"), IntSum("v", True), Extreme("v", True, "int64"))
RESULTS = (
    ("n", partial(results.count, rows=0)),
    ("total", partial(results.number, kernel=2, rows=1, kind=pa.int64())),
    ("most", partial(results.number, kernel=3, rows=1, kind=pa.int64())),
)
WHERE = Where("operator 'road'", ("k",))
Found = dict[tuple[Any, int], tuple[Any, ...]]


class FakeState:
    """What Spark hands the step for a bucket."""

    def __init__(self) -> None:
        self.value: tuple[Any, ...] | None = None
        self.timeout_ms: int | None = None
        self.watermark_ms = 0

    @property
    def exists(self) -> bool:
        return self.value is not None

    @property
    def get(self) -> tuple[Any, ...]:
        assert self.value is not None
        return self.value

    def update(self, value: tuple[Any, ...]) -> None:
        self.value = value

    def remove(self) -> None:
        self.value = self.timeout_ms = None

    def setTimeoutTimestamp(self, timeout_ms: int) -> None:
        assert timeout_ms >= self.watermark_ms
        self.timeout_ms = timeout_ms

    def getCurrentWatermarkMs(self) -> int:
        return self.watermark_ms


class Machine:
    """Lanes, a shuffle and a step over one bucket, with Spark's rules for watermarks."""

    def __init__(self, shape: WindowShape, append: bool, kernels: Any = KERNELS) -> None:
        self.lane = PaneLane(("k",), shape, kernels, (0,), True, WHERE)
        self.step = PaneStep(shape, kernels, RESULTS, append, True, WHERE, "q")
        self.state = FakeState()
        self.late_ms = self.now_ms = 0

    def batch(self, lanes: Iterable[list[tuple[Any, int, Any]]], watermark_ms: int) -> Found:
        self.late_ms, self.now_ms = self.now_ms, watermark_ms
        self.state.watermark_ms = watermark_ms
        frames = []
        for rows in lanes:
            for part in self.lane([_rows(rows)]):
                frame = part.to_pandas()
                frames.append(frame[frame["expires"] > self.late_ms * 1000])
        due = self.state.timeout_ms is not None and self.state.timeout_ms < watermark_ms
        if not frames and not due:
            return {}
        return _found(self.step((0,), iter(frames), self.state))


def _rows(rows: list[tuple[Any, int, Any]]) -> pa.RecordBatch:
    keys, times, values = zip(*rows, strict=True) if rows else ((), (), ())
    return pa.RecordBatch.from_arrays(
        [
            pa.array(keys, pa.string()),
            pa.array(times, pa.timestamp("us", "UTC")),
            pa.array(values, pa.int64()),
        ],
        names=["k", "t", "v"],
    )


def _found(frames: Iterable[pd.DataFrame]) -> Found:
    found: Found = {}
    for frame in frames:
        for content in frame["content"]:
            for row in pa.ipc.open_stream(content).read_all().to_pylist():
                key = (row.pop("k"), row.pop("window"))
                assert key not in found
                found[key] = tuple(row.values())
    return found


class Plainly:
    """Every row in each of its windows, as Spark does it."""

    def __init__(self, shape: WindowShape, append: bool) -> None:
        self.shape, self.append = shape, append
        self.held: dict[tuple[Any, int], list[Any]] = defaultdict(list)
        self.late_ms = self.now_ms = 0

    def batch(self, lanes: Iterable[list[tuple[Any, int, Any]]], watermark_ms: int) -> Found:
        self.late_ms, self.now_ms = self.now_ms, watermark_ms
        touched = set()
        for key, at, value in (row for lane in lanes for row in lane):
            last = (at - self.shape.origin) // self.shape.slide
            window = last
            while self._end(window) > at:
                if self._end(window) > self.late_ms * 1000:
                    self.held[key, window].append(value)
                    touched.add((key, window))
                window -= 1
        ended = [place for place in self.held if self._end(place[1]) <= watermark_ms * 1000]
        emitted = ended if self.append else touched
        found = {place: self._result(self.held[place]) for place in emitted}
        for place in ended:
            del self.held[place]
        return found

    def _end(self, window: int) -> int:
        return window * self.shape.slide + self.shape.origin + self.shape.length

    @staticmethod
    def _result(values: list[Any]) -> tuple[Any, ...]:
        known = [value for value in values if value is not None]
        return len(values), sum(known) if known else None, max(known, default=None)


@st.composite
def histories(draw: Any) -> Any:
    slide = draw(st.integers(1, 9)) * 1000
    length = slide + draw(st.integers(0, 40)) * draw(st.sampled_from([1000, 500]))
    shape = WindowShape(length, slide, draw(st.integers(0, slide - 1)))
    row = st.tuples(
        st.sampled_from(["a", "b", None]),
        st.integers(970_000, 1_120_000),
        st.one_of(st.none(), st.integers(-5, 5)),
    )
    lane = st.lists(row, max_size=12)
    batch = st.tuples(st.lists(lane, max_size=3), st.integers(0, 25))
    return shape, draw(st.booleans()), draw(st.lists(batch, max_size=7))


@settings(max_examples=100, deadline=None)
@given(histories())
def test_windows_of_panes_equal_windows_of_rows(history: Any) -> None:
    shape, append, batches = history
    ours, plain = Machine(shape, append), Plainly(shape, append)
    watermark_ms = 990
    for lanes, step_ms in batches:
        assert ours.batch(lanes, watermark_ms) == plain.batch(lanes, watermark_ms)
        watermark_ms += step_ms
    if append:  # batches without rows close what the watermark has passed
        for later_ms in (watermark_ms, watermark_ms + 1, 10**6, 10**6):
            assert ours.batch([], later_ms) == plain.batch([], later_ms)


def test_state_is_forgotten_when_all_its_windows_have_ended() -> None:
    machine = Machine(WindowShape(10_000, 2_000), append=True)
    machine.batch([[("a", 1, 1)]], 0)
    assert machine.state.exists
    assert len(machine.batch([], 1000)) == 5
    assert not machine.state.exists


def test_a_state_of_another_query_is_refused() -> None:
    machine = Machine(WindowShape(10_000, 2_000), append=True)
    machine.batch([[("a", 1, 1)]], 0)
    machine.step = replace(machine.step, made_for="another")
    with pytest.raises(PenstockError, match="created with q, and now it is another"):
        machine.batch([[("a", 1, 1)]], 0)


@given(st.lists(st.floats(allow_nan=True), min_size=1, max_size=40), st.data())
def test_ranges_of_floats_never_subtract(values: list[float], data: Any) -> None:
    low = data.draw(st.integers(0, len(values) - 1))
    high = data.draw(st.integers(low, len(values)))
    bounds = np.array([low]), np.array([high])
    with np.errstate(all="ignore"):
        total = over_ranges(np.add, np.array(values), *bounds, 0.0)[0]
    finite = [value for value in values[low:high] if np.isfinite(value)]
    if len(finite) == high - low and sum(map(abs, finite)) < 1e300:
        assert abs(total - sum(finite)) <= 1e-12 * sum(map(abs, finite))
    assert np.isfinite(total) or len(finite) < high - low or sum(map(abs, finite)) > 1e300
    greatest = over_ranges(np.maximum, np.array(values), *bounds, -np.inf)[0]
    assert high == low or np.isnan(greatest) == bool(np.isnan(values[low:high]).any())


def test_integers_beyond_64_bits_are_an_error_or_wrap() -> None:
    values = pa.array([2**63 - 1, 1, -1])
    group = np.array([0, 0, 0])
    assert IntSum("v", True).of_rows([values], group, 1)[0].tolist() == [2**63 - 1]
    with pytest.raises(PenstockError, match="ARITHMETIC_OVERFLOW"):
        IntSum("v", True).of_rows([values[:2]], group[:2], 1)
    assert IntSum("v", False).of_rows([values[:2]], group[:2], 1)[0].tolist() == [-(2**63)]
    panes = (np.array([2**62, 2**62], dtype=np.int64),)
    with pytest.raises(PenstockError, match="ARITHMETIC_OVERFLOW"):
        IntSum("v", True).of_ranges(panes, np.array([0]), np.array([2]))


def test_windows_of_rows_are_told_when_full() -> None:
    shape = WindowShape(4, 2)
    kernels = (Rows(), FloatSum("v"))
    mean = ("sum", partial(results.mean, kernel=1, rows=0))
    step = RowStep(("k",), "t", shape, kernels, (mean,), WHERE, "q")
    lane, state = RowLane(("k",), (0,)), FakeState()
    values, found = list(range(11)), {}
    for start, end in ((0, 3), (3, 9), (9, 11)):
        rows = [("a", at, at) for at in values[start:end]][::-1]  # they come in no order
        batch = _rows(rows)
        batch = batch.set_column(2, "v", batch.column("v").cast(pa.float64()))
        for part in lane([batch]):
            more = _found(step((0,), [part.to_pandas()], state))
            assert not more.keys() & found.keys()
            found.update(more)
    assert found == {("a", w): (np.mean(values[2 * w : 2 * w + 4]),) for w in range(4)}


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_windows_of_numbered_rows_are_those_of_a_batch_whatever_the_order(data: Any) -> None:
    """Rows are reduced by lanes; they come in any order, over any lanes and batches."""
    slide = data.draw(st.integers(1, 6))
    shape = WindowShape(data.draw(st.integers(slide, 12)), slide)
    counts = data.draw(st.lists(st.integers(0, 40), min_size=1, max_size=3))
    rows = [
        (f"k{key}", at, 7 * key + at) for key, count in enumerate(counts) for at in range(count)
    ]
    rows = data.draw(st.permutations(rows))
    kernels = (*KERNELS, Rows())
    lane = PaneLane(("k",), shape, kernels, (0,), False, WHERE)
    step, state, found = NumberedStep(shape, kernels, RESULTS, WHERE, "q"), FakeState(), {}
    while rows:
        count = data.draw(st.integers(1, 30))
        batch, rows = rows[:count], rows[count:]
        frames = [part.to_pandas() for one in _cut(batch, data) for part in lane([_rows(one)])]
        more = _found(step((0,), frames, state))
        assert not more.keys() & found.keys()
        found.update(more)
    expected = {}
    for key, count in enumerate(counts):
        for window in range(max(0, (count - shape.length) // slide + 1)):
            values = [7 * key + window * slide + at for at in range(shape.length)]
            expected[f"k{key}", window] = (len(values), sum(values), max(values))
    assert found == expected


def _cut(rows: list[Any], data: Any) -> list[list[Any]]:
    place = data.draw(st.integers(0, len(rows)))
    return [part for part in (rows[:place], rows[place:]) if part]


def test_a_number_that_comes_twice_is_told_with_its_key() -> None:
    kernels = (*KERNELS, Rows())
    lane = PaneLane(("k",), WindowShape(4, 2), kernels, (0,), False, WHERE)
    step = NumberedStep(WindowShape(4, 2), kernels, RESULTS, WHERE, "q")
    rows = [("a", 0, 1), ("a", 1, 1), ("a", 1, 1)]
    frames = [part.to_pandas() for part in lane([_rows(rows)])]
    with pytest.raises(PenstockError, match=r"3 rows are numbered 0 to 1; .* at key \(k='a'\)\."):
        list(step((0,), frames, FakeState()))


def _kernel(**functions: Any) -> UserKernel:
    given = {
        "init": lambda: {"n": 0},
        "update": lambda state, rows: {"n": state["n"] + rows.num_rows},
        "merge": lambda left, right: {"n": left["n"] + right["n"]},
        "result": lambda state: state["n"],
        **functions,
    }
    aggregate = UserAggregate(columns=["v"], state="n BIGINT", returns="BIGINT", **given)
    return UserKernel("mine", aggregate, ("v",), pa.struct([("n", pa.int64())]), pa.int64())


def _bad(*_: Any) -> Any:
    raise ValueError("no such\nroad")


@pytest.mark.parametrize(
    ("functions", "said"),
    [
        ({"update": _bad}, "aggregate 'mine': update raised ValueError: no such road"),
        ({"merge": _bad}, "aggregate 'mine': merge raised ValueError: no such road"),
        ({"merge": lambda left, right: 7}, "merge returned 7; its state is a dict of n"),
        ({"merge": lambda left, right: {"n": "7"}}, "merge returned {'n': '7'}, which is not of"),
        ({"result": lambda state: "many"}, "result returned 'many', which is not of its type"),
    ],
)
def test_a_users_mistake_is_told_with_operator_and_key(functions: Any, said: str) -> None:
    kernels = (_kernel(**functions),)
    shape = WindowShape(2_000, 1_000)
    lane = PaneLane(("k",), shape, kernels, (0,), True, WHERE)
    mine = ("mine", partial(results.user, kernel=0, of=kernels[0]))
    step = PaneStep(shape, kernels, (mine,), True, True, WHERE, "q")
    state = FakeState()
    state.watermark_ms = 1000

    def run() -> None:
        rows = [_rows([("b", 900_500, 1), ("b", 901_500, 1)]), _rows([("b", 900_700, 1)])]
        frames = [part.to_pandas() for batch in rows for part in lane([batch])]
        list(step((0,), frames, state))

    with pytest.raises(PenstockError) as error:
        run()
    text = str(error.value)
    assert text.startswith("operator 'road': ")
    assert said in text
    assert text.endswith("at key (k='b').")
    assert "\n" not in text


def test_users_states_are_merged_over_any_ranges() -> None:
    kernel = _kernel()
    state = (pa.array([{"n": 2**place} for place in range(8)], kernel.state_type),)
    low = np.array([0, 1, 2, 5, 0, 7])
    high = np.array([3, 4, 7, 8, 2, 8])
    found = kernel.results(kernel.of_ranges(state, low, high)).to_pylist()
    assert found == [sum(2**p for p in range(a, b)) for a, b in zip(low, high, strict=True)]


def test_buckets_are_spread_evenly_over_partitions() -> None:
    for partitions in (2, 4, 8):
        homes = np.bincount([spark_hash(value) % partitions for value in bucket_values(32)])
        assert set(homes.tolist()) == {32 // partitions}
