"""Processors shared in space agree with queueing theory."""

import math
from dataclasses import replace

import numpy as np
import pytest

from penstock.errors import InvalidInput
from penstock.model.observation import Observation
from penstock.scaling.policies.autoscale_plus import usable_cpu
from penstock.scaling.policies.static import Static
from penstock.sim.run import simulate
from penstock.sim.scenario import ClusterSpec, OperatorSpec, Scenario, SourceSpec, Upstream
from penstock.sim.service import ServiceTime
from penstock.workloads.profiles import constant

SEEDS = 8
STUDENT_99 = 3.499  # two-sided 99 % of Student's t with 7 degrees of freedom
WARM_UP_S = 200.0


def queueing(*operators, rate=20.0, duration_s=2400.0, **more):
    processors = sum(operator.processors for operator in operators)
    cluster = ClusterSpec(processors, processors, processors)
    source = SourceSpec("in", constant(rate))
    return Scenario(
        "queue", duration_s, 5.0, (source,), operators, cluster, "space",
        jobs_per_step=64, period_s=100.0, **more,
    )  # fmt: skip


def mean_latencies(scenario):
    means = []
    for seed in range(SEEDS):
        results = simulate(replace(scenario, seed=seed), Static()).results
        warm = results.at_s > WARM_UP_S
        means.append(np.average(results.latency_s[warm], weights=results.rows[warm]))
    return np.asarray(means)


def assert_agrees(means, theory):
    error = STUDENT_99 * means.std(ddof=1) / math.sqrt(len(means))
    assert abs(means.mean() - theory) <= error
    assert error < 0.1 * theory  # or the interval would say nothing


def erlang_c_sojourn_s(rate, service_s, servers):
    """Mean time in an M/M/k queue."""
    load = rate * service_s
    waiting = load**servers / math.factorial(servers) * servers / (servers - load)
    delayed = waiting / (sum(load**n / math.factorial(n) for n in range(servers)) + waiting)
    return delayed * service_s / (servers - load) + service_s


@pytest.mark.parametrize(("servers", "load"), [(1, 0.5), (1, 0.8), (2, 0.7), (4, 0.5), (4, 0.85)])
def test_mmk_sojourn_is_erlangs(servers, load):
    service_s = load * servers / 20.0
    operator = OperatorSpec(
        "serve", (Upstream("in"),), ServiceTime("exponential", service_s), processors=servers
    )
    assert_agrees(mean_latencies(queueing(operator)), erlang_c_sojourn_s(20.0, service_s, servers))


@pytest.mark.parametrize(
    ("kind", "scv"),
    [("deterministic", 0.0), ("uniform", 0.2), ("gamma", 0.5), ("lognormal", 2.0)],
)
def test_mg1_wait_is_that_of_pollaczek_and_khinchine(kind, scv):
    service_s, load = 0.035, 0.7
    operator = OperatorSpec("serve", (Upstream("in"),), ServiceTime(kind, service_s, scv))
    theory = service_s + load * service_s * (1 + scv) / (2 * (1 - load))
    assert_agrees(mean_latencies(queueing(operator)), theory)


def test_a_loop_is_a_jackson_network():
    # A row goes from first to second, and back to first with probability 0.4.
    first = OperatorSpec(
        "first",
        (Upstream("in"), Upstream("second", 0.4)),
        ServiceTime("exponential", 0.04),
        processors=2,
    )
    second = OperatorSpec(
        "second", (Upstream("first"),), ServiceTime("exponential", 0.05), processors=2
    )
    visits = 1 / (1 - 0.4)
    rate = 18.0 * visits
    theory = visits * (erlang_c_sojourn_s(rate, 0.04, 2) + erlang_c_sojourn_s(rate, 0.05, 2))
    scenario = queueing(first, second, rate=18.0, duration_s=800.0)
    assert_agrees(mean_latencies(scenario), theory)


def test_a_row_that_comes_back_to_the_same_operator_queues_again():
    again = OperatorSpec(
        "again", (Upstream("in"), Upstream("again", 0.5)), ServiceTime("exponential", 0.04)
    )
    theory = 2 * erlang_c_sojourn_s(18.0, 0.04, 1)
    assert_agrees(mean_latencies(queueing(again, rate=9.0, duration_s=1200.0)), theory)


def test_a_tandem_adds_up():
    stages = [
        OperatorSpec(
            f"stage_{n}", (Upstream(f"stage_{n - 1}" if n else "in"),),
            ServiceTime("exponential", 0.03),
        )
        for n in range(3)
    ]  # fmt: skip
    theory = 3 * erlang_c_sojourn_s(20.0, 0.03, 1)
    assert_agrees(mean_latencies(queueing(*stages)), theory)


@pytest.mark.parametrize("servers", [1, 3])
def test_the_period_does_not_change_what_happens(servers):
    operator = OperatorSpec(
        "serve",
        (Upstream("in"),),
        ServiceTime("exponential", 0.04 * servers),
        processors=servers,
    )
    scenario = queueing(operator, duration_s=300.0)
    coarse = simulate(scenario, Static()).results
    fine = simulate(replace(scenario, period_s=0.7), Static()).results
    np.testing.assert_allclose(np.sort(coarse.at_s), np.sort(fine.at_s))
    np.testing.assert_allclose(np.sort(coarse.latency_s), np.sort(fine.latency_s))


def test_jobs_of_many_rows_keep_utilisation_and_latency_within_a_step():
    stages = [
        OperatorSpec(
            f"stage_{n}", (Upstream(f"stage_{n - 1}" if n else "in"),),
            ServiceTime("exponential", 0.0014), processors=2,
        )
        for n in range(5)
    ]  # fmt: skip
    scenario = replace(queueing(*stages, rate=1000.0, duration_s=300.0), jobs_per_step=8)
    run = simulate(scenario, Static())
    busy_s = sum(seen.components[4].busy_s for seen in run.observations)
    assert busy_s / (2 * 300.0) == pytest.approx(0.7, rel=0.02)
    exact = 5 * erlang_c_sojourn_s(1000.0, 0.0014, 2)
    assert abs(run.results.mean_s - exact) <= scenario.step_s


def test_overload_is_seen_as_backlog_and_full_servers():
    operator = OperatorSpec(
        "serve", (Upstream("in"),), ServiceTime("deterministic", 0.1), processors=1
    )
    run = simulate(queueing(operator, duration_s=300.0), Static())
    last = run.observations[-1]
    assert last.components[0].busy_s == pytest.approx(last.period_s)
    assert last.backlog_rows == pytest.approx(300 * (20 - 10), rel=0.1)
    assert last.components[0].arrival_rate_per_s == pytest.approx(20, rel=0.1)
    assert last.operators[0].arrival_rate_per_s == pytest.approx(10, rel=0.1)


def contended_scenario(cores: int) -> Scenario:
    """Two operators keep 1.5 processors busy each, on so many cores."""
    operators = tuple(
        OperatorSpec(name, (Upstream("rows"),), ServiceTime("exponential", 0.05), processors=4)
        for name in ("a", "b")
    )
    return Scenario(
        "contended", 120.0, 30.0, (SourceSpec("rows", constant(30.0)),), operators,
        ClusterSpec(8, 2, 8, cores=cores), "space", period_s=60.0,
    )  # fmt: skip


def contended(cores: int) -> Observation:
    return simulate(contended_scenario(cores), Static(), guards=()).observations[-1]


def test_slots_that_share_too_few_cores_slow_each_other_down() -> None:
    alone, enough, few = contended(0), contended(8), contended(2)
    assert alone.components[0].cpu == ()
    for seen in (alone, enough):
        assert seen.components[0].service_time_s == pytest.approx(0.05, rel=0.15)
    # Three processors' worth of work on two cores: rows take longer until no server is idle.
    assert few.components[0].service_time_s > 0.09
    (task,) = few.components[0].cpu
    assert task.used < 0.6
    assert task.others_used[0] == pytest.approx(0.5, abs=0.15)
    (task,) = enough.components[0].cpu
    assert task.used == 1.0
    assert usable_cpu(task.used, 1.0, task.others_used, alpha=0.8) == 1.0
    with pytest.raises(InvalidInput, match="share cores only with sharing = 'space'"):
        replace(contended_scenario(2), sharing="time")
