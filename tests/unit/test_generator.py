"""A generated stream is the same rows whoever asks, whenever, in whatever pieces."""

from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import InvalidInput
from penstock.workloads.generator import SCHEMA, Generator
from penstock.workloads.profiles import constant, steps


@given(
    seed=st.integers(0, 2**63 - 1),
    skew=st.sampled_from([0.0, 0.8, 1.5]),
    cuts=st.lists(st.integers(0, 500), min_size=1, max_size=6),
)
def test_any_cut_gives_the_same_rows(seed: int, skew: float, cuts: list[int]) -> None:
    stream = Generator(constant(100.0), keys=37, skew=skew, seed=seed)
    edges = [0, *sorted(cuts), 500]
    parts = [stream.batch(a, b, 1e9) for a, b in pairwise(edges)]
    assert pa.Table.from_batches(parts).equals(pa.Table.from_batches([stream.batch(0, 500, 1e9)]))


def test_columns_are_as_promised() -> None:
    batch = Generator(constant(10.0), keys=5, seed=1).batch(0, 1000, 1_700_000_000.0)
    assert batch.schema == SCHEMA
    key, value = batch.column("key").to_numpy(), batch.column("value").to_numpy()
    assert key.min() == 0
    assert key.max() == 4
    assert 0 <= value.min() < value.max() < 1
    assert abs(value.mean() - 0.5) < 0.05


def test_rows_arrive_when_the_profile_says() -> None:
    stream = Generator(steps([(10, 5.0), (10, 20.0)]), rows=1000)
    assert stream.available(10.0) == 50
    at = stream.batch(0, 100, 0.0).column("at").cast(pa.int64()).to_numpy() / 1e6
    assert (np.diff(at) > 0).all()
    assert at[49] == pytest.approx(10.0)
    assert stream.available(1e9) == 1000


def test_skew_follows_zipf() -> None:
    keys = Generator(constant(1.0), keys=1000, skew=1.0, seed=3).batch(0, 200_000, 0.0)
    counts = np.bincount(keys.column("key").to_numpy(), minlength=1000)
    expected = 200_000 / (np.arange(1, 1001) * (1 / np.arange(1, 1001)).sum())
    assert counts[:20] == pytest.approx(expected[:20], rel=0.1)


def test_seeds_give_other_rows_of_the_same_kind() -> None:
    one, two = (Generator(constant(1.0), keys=50, seed=s).batch(0, 5000, 0.0) for s in (1, 2))
    assert not one.column("key").equals(two.column("key"))
    same = (one.column("key").to_numpy() == two.column("key").to_numpy()).mean()
    assert same == pytest.approx(1 / 50, abs=0.01)


def test_it_travels_as_json() -> None:
    stream = Generator(steps([(1, 2.0), (3, 4.0)]), keys=9, skew=0.5, seed=8, rows=7, max_rows=3)
    assert Generator.from_json(stream.to_json()) == stream


@pytest.mark.parametrize(
    ("field", "value"),
    [("keys", 0), ("skew", -1), ("rows", -5), ("lanes", 0), ("max_rows", 0), ("seed", -1)],
)
def test_values_out_of_range_are_refused(field: str, value: int) -> None:
    with pytest.raises(InvalidInput, match=rf"Generator\({field}\) is {value}"):
        Generator(constant(1.0), **{field: value})  # type: ignore[arg-type]
