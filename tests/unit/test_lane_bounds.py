"""Lanes beyond the bound are given up, and what they had is dealt evenly."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from penstock.spark.sources.lane_bounds import within_bounds
from penstock.spark.sources.settings import Limits


def bounded(lane: list[int], before: list[int], need: list[float], lanes_max: int) -> list[int]:
    limits = Limits(lanes_max=lanes_max, lane_capacity_per_s=10.0)
    found = within_bounds(np.array(lane), np.array(before), np.array(need), limits)
    return found.lane.tolist()


@given(st.data())
def test_lanes_are_within_the_bound_and_carry_alike(data: st.DataObject) -> None:
    count = data.draw(st.integers(1, 60))
    numbers = st.lists(st.integers(1, 12), min_size=count, max_size=count)
    needs = st.lists(st.floats(0, 9), min_size=count, max_size=count)
    lane, before, need = data.draw(numbers), data.draw(numbers), data.draw(needs)
    most = data.draw(st.integers(1, 5))
    found = bounded(lane, before, need, most)
    assert len(set(found)) <= most
    if len(set(lane)) <= most:
        assert found == lane
        return
    kept = set(found) | (set(lane) & set(found))
    assert all(now == wanted for now, wanted in zip(found, lane, strict=True) if wanted in kept)


def test_all_lanes_too_full_alike_keep_their_streams() -> None:
    before = [1] * 6 + [2] * 6
    assert bounded([1] * 5 + [3] + [2] * 5 + [3], before, [2.0] * 12, 2) == before


def test_new_streams_level_the_lanes() -> None:
    lane = [1, 1, 1, 2, *[3] * 5]
    found = bounded(lane, [1, 1, 1, 2, *[-1] * 5], [2.0] * 9, 2)
    assert (found.count(1), found.count(2)) in [(4, 5), (5, 4)]
    assert found[:4] == [1, 1, 1, 2]
