"""Erlang's formula, traffic equations, and the two allocation algorithms of Fu et al. 2017."""

import itertools
import math
from collections.abc import Iterator
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.errors import InvalidInput
from penstock.scaling.models.erlang import (
    all_gains_s,
    gains_s,
    least_processors,
    waiting_time_s,
    waiting_times_s,
)
from penstock.scaling.models.heterogeneous import assign_by_speed, fewest_by_speed
from penstock.scaling.models.jackson import GIGK, MMK, Jackson
from penstock.scaling.models.network import Network, network
from penstock.scaling.models.traffic import arrival_rates


def exact_waiting(rate: Fraction, mu: Fraction, k: int) -> float:
    """Equations (2) and (3) of Fu et al. 2017, in exact arithmetic."""
    rho = rate / (k * mu)
    terms = sum((k * rho) ** n / math.factorial(n) for n in range(k))
    tail = (k * rho) ** k / math.factorial(k)
    pi0 = 1 / (terms + tail / (1 - rho))
    return float(pi0 * tail / ((1 - rho) ** 2 * mu * k))


@pytest.mark.parametrize(
    ("rate", "mu", "k"), [(1, 2, 1), (10, 4, 3), (99, 1, 100), (130, 1, 150), (300, 1, 301)]
)
def test_waiting_time_is_erlangs(rate: int, mu: int, k: int) -> None:
    expected = exact_waiting(Fraction(rate), Fraction(mu), k)
    assert waiting_time_s(rate, mu, k) == pytest.approx(expected, rel=1e-12)


def test_waiting_time_of_thousands_of_processors_is_finite_and_falls() -> None:
    waits = [waiting_time_s(50_000.0, 1.0, k) for k in (50_001, 50_100, 50_500, 51_000, 52_000)]
    assert all(math.isfinite(wait) and wait >= 0 for wait in waits)
    assert waits == sorted(waits, reverse=True)
    # Heavy traffic: almost every row waits, for 1 / (k mu - lambda) on average.
    assert waits[0] == pytest.approx(1.0, rel=0.01)


def test_no_queue_where_it_cannot_keep_up_or_nothing_comes() -> None:
    assert waiting_time_s(4.0, 2.0, 2) == math.inf
    assert waiting_time_s(0.0, 2.0, 1) == 0.0
    assert list(gains_s(0.0, 1.0)) == []


@given(load=st.floats(0.01, 2000.0), extra=st.integers(0, 60))
@settings(max_examples=60, deadline=None)
def test_gains_are_the_differences_of_waiting_times_and_fall(load: float, extra: int) -> None:
    least = least_processors(load)
    gains = list(itertools.islice(gains_s(load, 1.0), extra + 2))
    for i, gain in enumerate(gains):
        before, after = (
            waiting_time_s(load, 1.0, least + i),
            waiting_time_s(load, 1.0, least + i + 1),
        )
        assert gain == pytest.approx(before - after, rel=1e-6, abs=1e-12 * before)
    assert all(a >= b - 1e-12 * gains[0] for a, b in itertools.pairwise(gains))


def random_network(rng: np.random.Generator, size: int, heaviest: float = 4.0) -> Network:
    mu = rng.uniform(0.5, 20.0, size)
    rates = mu * rng.uniform(0.05, heaviest, size)
    return network(
        tuple(f"op{i}" for i in range(size)),
        rates,
        mu,
        float(rng.uniform(0.5, 20.0)),
        rng.uniform(0.0, 4.0, size),
        rng.uniform(0.0, 4.0, size),
    )


def exhaustive(model: Jackson, net: Network, processors: int) -> float:
    size = len(net.names)
    best = math.inf
    for split in itertools.product(range(1, processors + 1), repeat=size):
        if sum(split) <= processors:
            best = min(best, model.latency_s(net, np.array(split)))
    return best


@pytest.mark.parametrize("model", [MMK, GIGK], ids=lambda model: model.name)
@pytest.mark.parametrize("seed", range(25))
def test_assign_processors_equals_exhaustive_search(model: Jackson, seed: int) -> None:
    rng = np.random.default_rng(seed)
    net = random_network(rng, int(rng.integers(1, 4)), heaviest=3.0)
    least = sum(least_processors(load) for load in net.loads)
    processors = least + int(rng.integers(0, 6))
    found = model.assign(net, processors)
    assert found.infeasible is None
    assert found.processors == int(found.parallelism.sum()) == processors
    assert found.latency_s == pytest.approx(exhaustive(model, net, processors), rel=1e-12)


@pytest.mark.parametrize("model", [MMK, GIGK], ids=lambda model: model.name)
@pytest.mark.parametrize("seed", range(25))
def test_min_processors_is_the_least_that_keeps_the_bound(model: Jackson, seed: int) -> None:
    rng = np.random.default_rng(100 + seed)
    net = random_network(rng, int(rng.integers(1, 5)))
    bound = net.service_time_s * float(rng.uniform(1.02, 3.0))
    found = model.minimum(net, bound, 1000)
    assert found.infeasible is None
    assert found.latency_s <= bound
    assert found.latency_s == pytest.approx(model.latency_s(net, found.parallelism))
    fewer = model.assign(net, found.processors - 1)
    assert fewer.infeasible is not None or fewer.latency_s > bound


def test_the_lower_bound_weighs_service_times_by_visits() -> None:
    """Four visits of 0.5 s each cannot be met within 1 s, whatever Algorithm 2's line 5 says."""
    net = network(("a",), np.array([8.0]), np.array([2.0]), 2.0)
    found = MMK.minimum(net, 1.0, 10_000)
    assert found.infeasible
    assert found.latency_s == pytest.approx(2.0)
    assert MMK.minimum(net, 2.001, 10_000).infeasible is None


def test_too_few_processors_are_answered_with_what_is_needed() -> None:
    net = network(("a", "b"), np.array([30.0, 10.0]), np.array([10.0, 10.0]), 30.0)
    for found in (MMK.assign(net, 4), MMK.minimum(net, 1.0, 4)):
        assert found.infeasible == "at least 6 processors are needed to keep up, 4 are allowed"
        assert found.least_processors == 6
        assert found.parallelism.sum() <= 4


def test_more_processors_than_can_help_are_spread_by_load() -> None:
    net = network(("big", "small"), np.array([90.0, 10.0]), np.array([10.0, 10.0]), 90.0)
    found = MMK.assign(net, 10_000)
    assert found.processors == 10_000
    assert found.parallelism.tolist() == [9000, 1000]


def test_waiting_follows_whitts_factor() -> None:
    net = network(("a",), np.array([2.0]), np.array([3.0]), 2.0, np.array([3.0]), np.array([2.0]))
    one = np.array([1])
    assert MMK.latency_s(net, one) == pytest.approx(1.0)  # M/M/1: 1 / (3 - 2)
    waiting = 1.0 - 1 / 3
    assert GIGK.latency_s(net, one) == pytest.approx(2.5 * waiting + 1 / 3)


def test_traffic_equations_with_split_join_and_loop() -> None:
    rates = arrival_rates(
        ["a", "b", "c", "d"],
        {"a": 10.0, "d": 2.0},
        {("a", "b"): 0.5, ("a", "c"): 2.0, ("b", "d"): 1.0, ("c", "d"): 0.25, ("d", "a"): 0.2},
    )
    # a = 10 + 0.2 d and d = 2 + 0.5 a + 0.5 a
    assert rates["a"] == pytest.approx((10 + 0.2 * 2) / 0.8)
    assert rates["d"] == pytest.approx(2 + rates["a"])
    assert rates["c"] == pytest.approx(2 * rates["a"])


@pytest.mark.parametrize("gain", [1.0, 1.5])
def test_a_loop_that_never_dies_out_is_refused(gain: float) -> None:
    with pytest.raises(InvalidInput, match="loop"):
        arrival_rates(["a", "b"], {"a": 1.0}, {("a", "b"): 1.0, ("b", "a"): gain})


def test_unknown_ends_of_routes_are_named() -> None:
    with pytest.raises(InvalidInput, match="'x'; known: a"):
        arrival_rates(["a"], {"a": 1.0}, {("a", "x"): 1.0})


@pytest.mark.parametrize("seed", range(10))
def test_processors_of_equal_speed_are_assigned_as_by_algorithm_1(seed: int) -> None:
    rng = np.random.default_rng(seed)
    net = random_network(rng, 3)
    processors = sum(least_processors(load) for load in net.loads) + 6
    found = assign_by_speed(net, [1.0] * processors)
    assert found.infeasible is None
    assert found.latency_s == pytest.approx(GIGK.assign(net, processors).latency_s)


def test_fast_processors_do_more_and_useless_ones_stay_unused() -> None:
    net = network(("a",), np.array([8.0]), np.array([1.0]), 8.0)
    fast = assign_by_speed(net, [10.0])
    assert fast.latency_s == pytest.approx(1 / (10 - 8))
    with_snail = assign_by_speed(net, [10.0, 0.001])
    assert with_snail.processors == ((0,),)
    assert assign_by_speed(net, [1.0] * 8).infeasible


def test_a_component_that_cannot_keep_up_is_never_nan() -> None:
    """Without any variation the weight of waiting is 0, and 0 times infinity is no latency."""
    still = network(("a",), np.array([4.0]), np.array([1.0]), 4.0, np.zeros(1), np.zeros(1))
    for processors in (3, 4):
        assert GIGK.latency_s(still, np.array([processors])) == math.inf
    assert GIGK.latency_s(still, np.array([5])) == pytest.approx(1.0)
    assert assign_by_speed(still, [1.0] * 4).infeasible is not None


def every_split(speeds: list[float], components: int) -> Iterator[list[list[int]]]:
    """Each processor with one of the components, or with none."""
    for homes in itertools.product(range(components + 1), repeat=len(speeds)):
        yield [[p for p, home in enumerate(homes) if home == i] for i in range(components)]


def by_speed_s(net: Network, speeds: list[float], split: list[list[int]]) -> float:
    """E[T] from the formula."""
    total = 0.0
    for i, places in enumerate(split):
        speed = sum(speeds[place] for place in places)
        if not speed > net.loads[i]:
            return math.inf
        rate = net.service_rate_per_s[i] * speed / len(places)
        waiting = waiting_time_s(net.arrival_rate_per_s[i], rate, len(places))
        total += net.visits[i] * (waiting + 1 / rate)
    return total


def test_loads_that_only_one_packing_covers_are_covered() -> None:
    """4.9 and 3.9 on processors of 4, 3 and 2: the fastest belongs to the smaller load."""
    net = network(("a", "b"), np.array([4.9, 3.9]), np.ones(2), 4.9)
    found = assign_by_speed(net, [4.0, 3.0, 2.0], general=False)
    assert found.infeasible is None
    assert found.processors == ((1, 2), (0,))


@pytest.mark.parametrize("seed", range(25))
def test_unequal_processors_against_every_split(seed: int) -> None:
    rng = np.random.default_rng(seed)
    speeds = sorted(rng.choice([1.0, 1.5, 2.0, 3.0, 5.0], 6).tolist(), reverse=True)
    rates = rng.uniform(0.3, 0.33 * sum(speeds), 2)
    net = network(("a", "b"), rates, np.ones(2), float(rates[0]))
    best = min(by_speed_s(net, speeds, split) for split in every_split(speeds, 2))
    found = assign_by_speed(net, speeds, general=False)
    assert (found.infeasible is None) == math.isfinite(best)
    if found.infeasible is not None:
        return
    assert found.latency_s == pytest.approx(
        by_speed_s(net, speeds, [list(places) for places in found.processors])
    )
    assert found.latency_s == pytest.approx(best)
    bound = 1.5 * best
    fewest = min(
        sum(map(len, split))
        for split in every_split(speeds, 2)
        if by_speed_s(net, speeds, split) <= bound
    )
    kept = fewest_by_speed(net, speeds, bound, general=False)
    assert kept.latency_s <= bound
    assert sum(map(len, kept.processors)) == fewest


def test_many_unequal_processors_are_covered_and_exchanged() -> None:
    """Forty processors of forty speeds: a program covers the loads, exchanges do the rest."""
    speeds = np.linspace(1.0, 5.0, 40).tolist()
    net = network(("a", "b", "c"), np.array([70.0, 30.0, 17.0]), np.ones(3), 70.0)
    found = assign_by_speed(net, speeds, general=False)
    split = [list(places) for places in found.processors]
    assert found.infeasible is None
    assert found.latency_s == pytest.approx(by_speed_s(net, speeds, split))
    held = [place for places in split for place in places]
    assert len(held) == len(set(held))


@pytest.mark.parametrize("model", [MMK, GIGK])
def test_many_components_are_computed_as_few_are(model: Jackson) -> None:
    """Forty components as columns, and in fours one by one: the same waiting times and gains."""
    rng = np.random.default_rng(5)
    rates, loads = rng.uniform(0.1, 500.0, 40), rng.uniform(0.01, 300.0, 40)
    loads[7], rates[9], loads[9] = 1e-9, 0.0, 0.0
    scv = rng.uniform(0.0, 3.0, 40)
    mus = rates / np.where(loads > 0, loads, 1.0) + (loads == 0)
    many = network(tuple(map(str, range(40))), rates, mus, 10.0, scv, scv)
    ks = np.floor(loads).astype(np.int64) + rng.integers(1, 5, 40)
    waits = waiting_times_s(rates, mus, ks)
    singly = [waiting_time_s(a, b, k) for a, b, k in zip(rates, mus, ks.tolist(), strict=True)]
    assert waits == pytest.approx(singly, rel=1e-12)
    assert math.isinf(model.latency_s(many, ks - 5))
    found = model.assign(many, int(loads.sum()) + 200)
    assert found.processors == int(loads.sum()) + 200
    weights = many.visits * (scv if model.general else 1.0)
    owner, gains = all_gains_s(rates, mus, weights, 1e-12, 50)
    for i in range(40):
        mine = gains[owner == i]
        first = itertools.islice(gains_s(float(rates[i]), float(mus[i])), 50)
        expected = [gain * weights[i] for gain in first]
        kept = list(itertools.takewhile(lambda gain: gain > 1e-12, expected))
        assert mine == pytest.approx(kept[: len(mine)], rel=1e-9, abs=1e-15)
        assert abs(len(mine) - len(kept)) <= 1
