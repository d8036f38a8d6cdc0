"""Fair shares of a lane."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from penstock.spark.sources.fair import fair_shares

STREAMS = st.lists(st.tuples(st.integers(0, 30), st.integers(0, 3)), min_size=1, max_size=25)


@given(STREAMS, st.integers(1, 80), st.integers(0, 9))
def test_shares_are_max_min_fair(streams: list[tuple[int, int]], capacity: int, turn: int) -> None:
    waiting, lane = (np.array(column) for column in zip(*streams, strict=True))
    shares = fair_shares(waiting, lane, capacity, turn)
    assert (shares >= 0).all()
    assert (shares <= waiting).all()
    for number in np.unique(lane):
        mine, wanted = shares[lane == number], waiting[lane == number]
        assert mine.sum() == min(capacity, wanted.sum())
        hungry = mine[mine < wanted]
        if len(hungry):  # who did not get all has at most one row less than anyone else
            assert mine.max() <= hungry.min() + 1


def test_rows_that_do_not_divide_go_round() -> None:
    waiting, lane = np.full(5, 9), np.zeros(5, dtype=np.int64)
    total = sum(fair_shares(waiting, lane, 2, turn) for turn in range(5))
    assert total.tolist() == [2, 2, 2, 2, 2]
