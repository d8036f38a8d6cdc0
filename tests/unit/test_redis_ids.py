"""Redis ids as positions: nothing is cut off within the bounds that are told."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from penstock.spark.sources.backends.redis_ids import clock_s, holdable, packed, texts, unpacked


@given(st.integers(0, 2**43 - 1), st.integers(0, 2**40 - 1), st.integers(0, 2**43 - 1))
def test_a_position_holds_id_and_number(ms: int, seq: int, number: int) -> None:
    position = packed(*(np.array([value], dtype=np.int64) for value in (ms, seq, number)))
    assert [int(column[0]) for column in unpacked(position)] == [ms, seq, number]
    assert position.major[0] >= 0
    assert position.minor[0] >= 0


def test_what_a_position_cannot_hold_is_told() -> None:
    ms = np.array([0, 2**43 - 1, 2**43, -1, 5])
    seq = np.array([0, 2**40 - 2, 0, 0, 2**40 - 1])
    assert holdable(ms, seq).tolist() == [True, True, False, False, False]


def test_ids_made_by_hand_tell_no_time() -> None:
    assert texts(np.array([5, 1_700_000_000_123]), np.array([0, 2])) == ["5-0", "1700000000123-2"]
    known = clock_s(np.array([5, 1_700_000_000_123]))
    assert np.isnan(known[0])
    assert known[1] == 1_700_000_000.123
