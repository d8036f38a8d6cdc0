"""The applications that the DRS experiments rest on."""

import numpy as np
import pytest

from experiments.drs.trials.allocations import trees_s
from experiments.drs.workloads.applications import fpd, frame_rates, nearest, vld
from penstock.sim.tally import Results
from penstock.workloads.profiles import constant


def test_visits_follow_the_loop_of_the_detector() -> None:
    net = fpd(1.0).network()
    assert net.names == ("generate", "detect", "report")
    assert net.visits == pytest.approx([1.0, 2.0 / 0.95, 0.2 / 0.95])
    with_transfers = fpd(1.0, hop_s=0.01).network()
    assert with_transfers.visits == pytest.approx(net.visits)


def test_an_allocation_leaves_the_transfers_alone() -> None:
    scenario = vld((0.1, 0.1, 0.1), constant(1.0), 10.0, hop_s=0.01).allocated((2, 3, 1), seed=4)
    processors = {operator.name: operator.processors for operator in scenario.operators}
    assert processors == {
        "to_extract": 100, "extract": 2, "to_match": 100, "match": 3, "to_aggregate": 100,
        "aggregate": 1,
    }  # fmt: skip
    assert (scenario.seed, scenario.cluster.executors) == (4, 306)


def test_nearest_allocations_keep_the_total() -> None:
    found = nearest((6, 13, 3), 5)
    assert found[0] == (6, 13, 3)
    assert {sum(one) for one in found} == {22}
    assert all(
        sum(abs(a - b) for a, b in zip(one, found[0], strict=True)) == 2 for one in found[1:]
    )


def test_a_tuple_is_done_with_its_last_result() -> None:
    at_s = np.array([1.5, 2.0, 2.25, 9.0])
    latency_s = np.array([0.5, 1.0, 0.25, 4.0])  # the first two came at 1, then at 2 and at 5
    results = Results(at_s, latency_s, np.ones(4, dtype=np.int64))
    assert trees_s(results, 0.0).tolist() == [1.0, 0.25, 4.0]
    assert trees_s(results, 1.5).tolist() == [0.25, 4.0]


def test_frame_rates_are_drawn_between_their_bounds() -> None:
    profile = frame_rates(500.0, seed=2)
    assert min(profile.rates_per_s) >= 1
    assert max(profile.rates_per_s) <= 25
    assert profile.rows / 500 == pytest.approx(13, rel=0.1)
    assert profile == frame_rates(500.0, seed=2)
