"""The random topologies of the fusion experiments."""

import numpy as np
import pytest

from experiments.fusion.workloads.random_topologies import (
    group_shares,
    measured_graph,
    random_topology,
)


def test_random_topology_conserves_what_operators_emit() -> None:
    topology = random_topology(np.random.default_rng(1), 40, 3)
    assert len(topology.edges) == 120
    assert len(set(topology.edges)) == 120
    assert all(up < down for up, down in topology.edges)
    assert topology.source_rate_per_s.sum() == pytest.approx(10_000)
    assert all(len(set(key)) == 2 for key in topology.keys)


def test_rows_that_are_copied_go_to_every_downstream_alike() -> None:
    topology = random_topology(np.random.default_rng(1), 40, 3, copied=True)
    once = random_topology(np.random.default_rng(1), 40, 3)
    assert (topology.edges, topology.keys) == (once.edges, once.keys)
    sent: dict[int, set[float]] = {}
    for (up, _), rate in zip(topology.edges, topology.edge_rate_per_s.tolist(), strict=True):
        sent.setdefault(up, set()).add(rate)
    assert all(len(rates) == 1 for rates in sent.values())
    processed = [
        one.edge_rate_per_s.sum() + one.source_rate_per_s.sum() for one in (topology, once)
    ]
    assert processed[0] == pytest.approx(processed[1])


def test_longer_windows_hold_the_same_rows() -> None:
    topology = random_topology(np.random.default_rng(1), 10, 2)
    shares = group_shares(np.random.default_rng(2), 10, 8, skewed=True)
    assert shares.sum(axis=1) == pytest.approx(np.ones(10))
    assert (shares[0] != shares[-1]).any()
    one = measured_graph(np.random.default_rng(3), topology, shares, 1)
    five = measured_graph(np.random.default_rng(3), topology, shares, 5)
    assert one.input_rows.shape == (10, 10, 8)
    assert five.input_rows.shape == (10, 2, 8)
    assert five.total_rows == one.total_rows
    assert (five.state_rows[:, 1] == one.state_rows[:, 9]).all()
