"""The arena: what executors are paid for, who is dominated, and what all are compared with."""

from dataclasses import replace
from pathlib import Path

import pytest

from penstock.config import Settings
from penstock.errors import InvalidInput
from penstock.sim.arena import (
    Contest,
    Score,
    averaged,
    check,
    dominated_by,
    run_policy,
    run_references,
)
from penstock.sim.cluster import Cluster
from penstock.sim.following import follow
from penstock.sim.scenario import (
    BatchCost,
    ClusterSpec,
    OperatorSpec,
    Scenario,
    SourceSpec,
    Upstream,
)
from penstock.sim.scenario_file import load_scenario
from penstock.sim.service import ServiceTime
from penstock.workloads.profiles import steps

LOADS = Path(__file__).parents[2] / "benchmarks/arena/choose"


def small(**more):
    profile = steps([(100, 60.0), (100, 350.0), (100, 60.0)])
    return Scenario(
        "small", 300.0, 5.0, (SourceSpec("in", profile),),
        (OperatorSpec("work", (Upstream("in"),), ServiceTime("exponential", 0.01)),),
        ClusterSpec(1, 1, 4, 2, 10.0), batch=BatchCost(0.25), **more,
    )  # fmt: skip


def score(policy, share, seconds):
    return Score("s", 1, policy, share, 1.0, seconds, 0)


def test_executors_are_paid_for_from_when_they_are_asked_for():
    cluster = Cluster(ClusterSpec(1, 1, 4, 1, startup_s=10.0))
    cluster.scale(3, 20.0)
    assert cluster.paid_seconds(25.0) == 25.0 + 2 * 5.0
    cluster.scale(2, 26.0)  # one of those that start is given up
    cluster.release(26.0)
    assert cluster.paid_seconds(50.0) == 50.0 + 30.0 + 6.0
    assert cluster.node_seconds(50.0) == 50.0 + 20.0
    cluster.scale(1, 60.0)
    cluster.release(61.0)
    cluster.scale(1, 100.0)  # forgets those that are gone
    assert cluster.paid_seconds(100.0) == 100.0 + 41.0 + 6.0


def test_a_plan_is_followed_with_executors_asked_for_in_time():
    sizes = [1] * 20 + [2] * 20 + [1] * 20
    plan = follow(small(), sizes)
    assert plan.reconfigurations == 2
    paid = 300.0 + 100.0 + 10.0
    assert paid <= plan.paid_executor_seconds <= paid + 5.0  # the last batch is finished


def test_dominated_are_those_that_another_beats_on_one_axis_and_not_on_the_other():
    cheap, good, poor = score("cheap", 0.9, 10), score("good", 0.99, 20), score("poor", 0.9, 20)
    scores = (cheap, good, poor)
    assert [dominated_by(one, scores) for one in scores] == [(), (), ("cheap", "good")]
    assert dominated_by(cheap, [score("same", 0.9, 10)]) == ()


def test_the_references_keep_the_share_and_the_clairvoyant_is_the_cheapest_of_them():
    found = run_references(small())
    assert all(one.in_time_share >= 0.99 for one in found.scores)
    assert found.at_least <= 1.02 * found.clairvoyant.executor_seconds
    assert found.clairvoyant.executor_seconds < found.static_min.executor_seconds
    assert found.static_min.executor_seconds == found.static_min_executors * 300.0
    less = follow(small(), [found.static_min_executors - 1] * 60)
    assert less.results.in_time_share(5.0) < 0.99


def test_where_the_share_cannot_be_kept_the_static_minimum_is_the_maximum():
    tight = replace(small(), cluster=ClusterSpec(1, 1, 1, 2, 10.0))
    found = run_references(tight)
    assert found.static_min_executors == 1
    assert found.clairvoyant.in_time_share == pytest.approx(found.static_max.in_time_share)


def test_a_policy_is_scored_as_it_would_be_simulated():
    found = run_policy(small(), Settings(policy="ds2"))
    assert found.policy == "ds2"
    assert 0 < found.in_time_share <= 1
    assert 300.0 < found.executor_seconds < 1200.0
    assert found.reconfigurations > 0
    assert not found.failures


def test_the_mean_over_seeds():
    references = run_references(replace(small(), duration_s=30.0))
    contests = [
        Contest(small(), references, (score("drs", share, seconds),))
        for share, seconds in ((0.9, 10.0), (1.0, 30.0))
    ]
    (mean,) = averaged(contests).scores
    assert (mean.in_time_share, mean.executor_seconds) == (0.95, 20.0)
    assert averaged(contests).ratio(mean) == 20.0 / references.clairvoyant.executor_seconds


def test_processors_shared_in_space_have_no_clairvoyant():
    with pytest.raises(InvalidInput, match="sharing = 'space'"):
        check(replace(small(), sharing="space"))


@pytest.mark.parametrize(
    ("name", "load"),
    [
        ("incremental", "traffic"),
        ("ds2", "traffic"),
        ("drs", "bursty"),
        ("autoscale_plus", "bursty"),
    ],
)
def test_what_steadies_policies_keeps_more_in_time_for_little_more(name, load):
    """The first hour of loads to choose on (penstock docs arena has all of them)."""
    load = replace(load_scenario(LOADS / f"{load}.toml"), duration_s=3600.0)
    usual = run_policy(load, Settings(policy=name))
    off = run_policy(load, Settings(policy=name, scale_down_window_s=None, catch_up_s=None))
    assert usual.in_time_share > off.in_time_share + 0.05
    assert usual.executor_seconds < 1.2 * off.executor_seconds
