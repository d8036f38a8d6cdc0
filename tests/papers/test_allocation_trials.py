"""The clusters and jobs that the allocation experiments rest on."""

import numpy as np
import pytest

from experiments.allocation.trials.flights import apart
from experiments.allocation.workloads.clusters import fluctuating, pipeline_traffic
from experiments.allocation.workloads.flights import periods


def test_flights_talk_one_to_one_until_routes_come_in() -> None:
    planes, routes = (next(periods(job, 1)) for job in (2, 3))
    together = np.arange(200) % 100 % 20
    assert planes.traffic.collocation(together) == 1.0
    assert planes.traffic.collocation(apart(2)) == 0.0
    assert planes.load(together).sum() == pytest.approx(planes.load(apart(2)).sum() / 2)
    assert routes.traffic.rate.sum() == 2 * planes.traffic.rate.sum()
    assert len(planes.traffic.rate) <= 100 < len(routes.traffic.rate)


def test_the_synthetic_cluster_is_the_one_of_the_paper() -> None:
    problem = fluctuating(20, 20, varies=20, max_migrations=10, seed=3)
    loads = problem.node_loads(problem.home)
    assert np.bincount(problem.home).tolist() == [20] * 20
    assert np.count_nonzero(loads > 53) == 2
    assert np.count_nonzero(loads < 47) == 2


def test_a_share_of_the_pipeline_talks_one_to_one() -> None:
    traffic = pipeline_traffic(groups=100, operators=5, one_to_one=0.5, seed=0)
    alone = np.count_nonzero(traffic.rate == 1.0)
    assert 25 <= alone <= 55
    assert traffic.rate.sum() == pytest.approx(80)
