"""Processors shared in time agree with the micro-batch formula."""

import math
from dataclasses import replace

import numpy as np
import pytest

from penstock.scaling.policies.static import Static
from penstock.sim.run import simulate
from penstock.sim.scenario import (
    BatchCost,
    ClusterSpec,
    OperatorSpec,
    Scenario,
    SourceSpec,
    Upstream,
)
from penstock.sim.service import ServiceTime
from penstock.workloads.profiles import constant, steps

SEEDS = 8
STUDENT_99 = 3.499  # two-sided 99 % of Student's t with 7 degrees of freedom
WARM_UP_S = 60.0


def batches(rate=5000.0, service_s=1e-4, processors=1, duration_s=460.0, **cost):
    half = ServiceTime("exponential", service_s / 2)
    operators = (
        OperatorSpec("first", (Upstream("in"),), half),
        OperatorSpec("second", (Upstream("first"),), half),
    )
    cluster = ClusterSpec(1, 1, 4, slots=processors)
    return Scenario(
        "batches", duration_s, 5.0, (SourceSpec("in", constant(rate)),), operators, cluster,
        batch=BatchCost(**cost), period_s=20.0, jobs_per_step=32,
    )  # fmt: skip


def means(scenario):
    """Mean batch duration and mean latency, seed by seed."""
    durations, latencies = [], []
    for seed in range(SEEDS):
        run = simulate(replace(scenario, seed=seed), Static())
        seen = [o.batches for o in run.observations if o.at_s > WARM_UP_S]
        counts = [batch.count for batch in seen]
        durations.append(np.average([batch.mean_duration_s for batch in seen], weights=counts))
        warm = run.results.at_s > WARM_UP_S
        latencies.append(np.average(run.results.latency_s[warm], weights=run.results.rows[warm]))
    return np.asarray(durations), np.asarray(latencies)


def assert_agrees(sample, theory):
    error = STUDENT_99 * sample.std(ddof=1) / math.sqrt(len(sample))
    assert abs(sample.mean() - theory) <= error
    assert error < 0.05 * theory  # or the interval would say nothing


@pytest.mark.parametrize(("load", "processors"), [(0.25, 1), (0.5, 1), (0.5, 4), (0.75, 2)])
def test_back_to_back_batches_follow_the_formula(load, processors):
    service_s = load * processors / 5000.0
    scenario = batches(service_s=service_s, processors=processors, fixed_s=0.25)
    duration_s = 0.25 / (1 - load)
    durations, latencies = means(scenario)
    assert_agrees(durations, duration_s)
    assert_agrees(latencies, 1.5 * duration_s)


def test_a_trigger_interval_adds_half_of_itself():
    durations, latencies = means(batches(trigger_s=1.0, fixed_s=0.25))
    duration_s = 0.25 + 1.0 * 5000.0 * 1e-4
    assert_agrees(durations, duration_s)
    assert_agrees(latencies, 0.5 + duration_s)


def test_more_processors_can_be_slower():
    def duration_s(processors):
        scenario = batches(processors=processors, table=((1, 0.2), (4, 0.25), (8, 0.6)))
        return simulate(scenario, Static()).observations[-1].batches.mean_duration_s

    assert duration_s(4) < duration_s(1)
    assert duration_s(8) > duration_s(4)


def test_the_overhead_is_told_apart_from_the_work():
    seen = simulate(batches(fixed_s=0.2, per_processor_s=0.05), Static()).observations[-1]
    assert seen.batches.mean_overhead_s == pytest.approx(0.25)
    assert seen.components[0].service_time_s == pytest.approx(5e-5, rel=0.02)
    busy_s = sum(component.busy_s for component in seen.components)
    assert busy_s / seen.period_s == pytest.approx(0.5, rel=0.05)
    assert seen.nodes[0].busy_s == pytest.approx(busy_s)


def test_a_period_without_a_finished_batch_knows_no_rates():
    run = simulate(replace(batches(fixed_s=30.0), duration_s=60.0), Static())
    first = run.observations[0]
    assert first.batches.count == 0
    assert math.isnan(first.components[0].arrival_rate_per_s)
    assert "components" in first.missing
    assert first.latency is None
    assert first.arrival_rate_per_s == pytest.approx(5000, rel=0.05)


def test_no_rows_no_batches_and_nothing_missing():
    quiet = replace(
        batches(fixed_s=0.2),
        sources=(SourceSpec("in", steps([(20, 100.0), (1, 0.0)])),),
        duration_s=60.0,
    )
    last = simulate(quiet, Static()).observations[-1]
    assert last.batches.count == 0
    assert last.components[0].arrival_rate_per_s == 0
    assert last.missing == ()


def test_the_first_row_after_a_pause_waits_for_no_old_trigger():
    lonely = replace(
        batches(fixed_s=0.2),
        sources=(SourceSpec("in", steps([(10, 0.0), (1, 1.0), (1, 0.0)]), "regular"),),
        duration_s=20.0,
    )
    results = simulate(lonely, Static()).results
    assert results.count == 1
    assert results.latency_s[0] == pytest.approx(0.2, abs=0.01)


def test_rates_of_components_are_offered_whatever_the_batches_took():
    # Far too little for 5,000 rows a second: batches grow, and what they took lags behind.
    short = replace(batches(fixed_s=0.2), cluster=ClusterSpec(1, 1, 1), duration_s=120.0)
    slow = tuple(replace(one, service=ServiceTime("exponential", 0.001)) for one in short.operators)
    seen = [
        one for one in simulate(replace(short, operators=slow), Static()).observations
        if one.batches.count
    ]  # fmt: skip
    assert seen
    for one in seen:
        took = one.batches.count * one.batches.mean_rows / one.period_s
        assert one.components[0].arrival_rate_per_s == pytest.approx(one.arrival_rate_per_s)
        assert one.operators[0].arrival_rate_per_s == pytest.approx(took)
