"""`promise` plans for the share that is asked for, at any trigger and on clusters of any size."""

import math
from dataclasses import replace

import numpy as np
import pytest

from contract.test_scaling_policies import context as contract_context
from penstock.config import Settings
from penstock.control.from_settings import policy_of, settings_of, shadow_policies
from penstock.errors import InvalidInput
from penstock.model.batch_overhead import BatchOverhead
from penstock.model.decision import ActPrice, Decision, Limits, ScalingPlan
from penstock.model.observation import (
    BatchObservation,
    ComponentObservation,
    LatencyObservation,
    NodeObservation,
    Observation,
)
from penstock.scaling.models.batch_course import Capacities, RatePath, Work, follow, steady_share_s
from penstock.scaling.policies.policy import ScalingContext
from penstock.scaling.policies.promise import Promise
from penstock.scaling.policies.promise_costs import learn_costs

ROW_S, FIXED_S = 0.01, 0.25


def seen(at_s: float, processors: int, rate_per_s: float, interval_s: float = 0.0) -> Observation:
    """A period of batches that are all alike."""
    used = rate_per_s * ROW_S / processors
    batch_s = FIXED_S / (1 - used) if not interval_s else FIXED_S + used * interval_s
    waits_s = max(interval_s, batch_s)
    part = ComponentObservation("a", ("a",), rate_per_s, ROW_S, processors, 1.0)
    return Observation(
        at_s, 5.0, rate_per_s, 0.0, components=(part,),
        nodes=(NodeObservation("n", processors, 1.0),),
        latency=LatencyObservation(
            round(5 * rate_per_s), waits_s / 2 + batch_s, 0.95 * waits_s + batch_s,
            waits_s + batch_s, 1.0,
        ),
        batches=BatchObservation(1, batch_s, FIXED_S, rate_per_s * waits_s),
    )  # fmt: skip


def decided(
    processors: int, rate_per_s: float, most: int = 16, interval_s: float = 0.0, **limits: float
) -> Decision[ScalingPlan]:
    window = tuple(seen(5.0 * n, processors, rate_per_s, interval_s) for n in range(60))
    asked = Limits(1, most, limits.get("bound_s", 5.0), limits.get("share", 0.99))
    plan = ScalingPlan({"a": processors}, processors)
    given = ScalingContext(window, plan, asked, act_price=ActPrice(15.0))
    return Promise(trigger_interval_s=interval_s).decide(given)


@pytest.mark.parametrize(("processors", "rate_per_s"), [(60, 5_500.0), (140, 13_500.0)])
def test_what_does_not_hinder_each_other_is_added_on_a_large_cluster_too(
    processors: int, rate_per_s: float
) -> None:
    found = decided(processors, rate_per_s, most=400)
    assert found.plan.processors > processors  # 92 and 96% busy: results would be late
    assert found.infeasible is None
    assert not any("would not help" in line for line in found.reasons)


@pytest.mark.parametrize("interval_s", [0.0, 2.0, 4.0])
@pytest.mark.parametrize("share", [0.5, 0.9, 0.95, 0.99, 0.999])
def test_batches_that_are_alike_are_known_to_be(interval_s: float, share: float) -> None:
    window = [seen(5.0 * n, 4, 100.0, interval_s) for n in range(30)]
    costs = learn_costs(window, interval_s, share)
    assert costs is not None
    assert costs.stretch == pytest.approx(1.0)


@pytest.mark.parametrize("interval_s", [0.0, 2.0, 4.0])
@pytest.mark.parametrize("share", [0.5, 0.9, 0.99])
def test_the_latency_foretold_is_that_of_the_share(interval_s: float, share: float) -> None:
    """A row waits evenly up to a batch or an interval, and then for its own batch."""
    found = decided(4, 100.0, most=4, interval_s=interval_s, share=share)
    own = seen(0.0, found.plan.processors, found.numbers["load_upper_per_s"], interval_s).batches
    assert own is not None
    waits_s = max(interval_s, own.mean_duration_s)
    closed_s = share * waits_s + own.mean_duration_s
    assert found.numbers["latency_expected_s"] == pytest.approx(closed_s, rel=0.12)


def test_a_lower_share_needs_no_more_and_a_far_lower_one_less() -> None:
    """At an interval of 4 s and a bound of 5 s only the rows that come last can wait for long."""
    needed = [decided(8, 300.0, interval_s=4.0, share=q).plan.processors for q in (0.5, 0.9, 0.99)]
    assert needed == sorted(needed)
    assert needed[0] < needed[-1]


def test_the_quantile_of_a_course_is_that_of_single_rows() -> None:
    rng = np.random.default_rng(5)
    for _ in range(20):
        rates, share = rng.integers(100, 700, 6).astype(float), float(rng.uniform(0.3, 1.0))
        sizes = np.array([4.0, 6.0, 9.0])
        course = follow(
            RatePath(rates, 5.0), Work(BatchOverhead(FIXED_S), ROW_S),
            Capacities(((0.0, sizes),)), 0.0, 5.0, 30.0, share,
        )  # fmt: skip
        for size, found_s in zip(sizes.tolist(), course.latency_s.tolist(), strict=True):
            taken_s = _latencies_s(rates, size)
            assert found_s == pytest.approx(float(np.quantile(taken_s, share)), rel=0.1, abs=0.05)


def _latencies_s(rates_per_s: np.ndarray, processors: float) -> np.ndarray:
    """Each row on its own, batch by batch; of those that come while the rates last."""
    going_on = [*rates_per_s.tolist(), *[rates_per_s[-1]] * 20]
    at_s = np.concatenate(
        [5.0 * n + (np.arange(int(5 * rate)) + 0.5) / rate for n, rate in enumerate(going_on)]
    )
    took, begin_s, taken = [], FIXED_S / 2, 0
    while taken < len(at_s):
        upto = int(np.searchsorted(at_s, begin_s))
        end_s = begin_s + FIXED_S + ROW_S * (upto - taken) / processors
        took.append(end_s - at_s[taken:upto])
        begin_s, taken = end_s, upto
    return np.concatenate(took)[at_s < 5.0 * len(rates_per_s)]


def test_a_share_of_all_rows_is_the_slowest() -> None:
    work = Work(BatchOverhead(FIXED_S), ROW_S)
    rate, processors = np.array([200.0]), np.array([4.0])
    assert float(steady_share_s(work, rate, processors)[0]) == pytest.approx(1.0)
    assert float(steady_share_s(work, rate, processors, 0.5)[0]) == pytest.approx(0.75)


# Apart


def test_apart_a_higher_share_takes_more_and_the_forecast_is_kept() -> None:
    found = {}
    for share in (0.9, 0.99, 0.999):
        given = contract_context("space", [300.0] * 12, each=8, latency_s=0.8)
        newest = [replace(one, latency=LatencyObservation(99, 0.8, 1.4, 2.0, 1.0))
                  for one in given.window]  # fmt: skip
        limits = replace(given.limits, share=share)
        found[share] = Promise().decide(replace(given, window=tuple(newest), limits=limits))
    needed = [one.plan.processors for one in found.values()]
    assert needed == sorted(needed)
    for share, one in found.items():
        assert one.numbers["share"] == share
        assert math.isfinite(one.numbers["latency_expected_s"])
        assert any(f"{share * 100:g}% of results within" in line for line in one.reasons)
    # Beyond a least latency these are exponential: (m + t) with p95 = m + 3.0 t, p99 = m + 4.6 t.
    tail = 1 + 0.75 * (math.log(100) - 1) / (math.log(20) - 1)
    assert any(f"{tail:.2g} times the mean" in line for line in found[0.99].reasons)


# `aim`


def test_the_aim_of_policies_for_a_mean_is_refused_and_left_out_beside_others() -> None:
    settings = Settings(policy="promise", aim=0.5)
    with pytest.raises(InvalidInput, match=r"aim is 0\.5.*promise plans for the share"):
        policy_of(settings)
    with pytest.raises(InvalidInput, match="aim is"):
        shadow_policies(Settings(policy="drs", aim=0.5, shadow="promise"))
    assert settings_of("promise", Settings(policy="drs", aim=0.5)).aim == 1
    assert settings_of("drs", Settings(aim=0.5)).aim == 0.5
