"""Rows along each edge: what components will get, and what an upstream's growth sends to whom."""

from collections.abc import Mapping

import pytest

from penstock.model.decision import Limits, ScalingPlan
from penstock.model.observation import ComponentObservation, Flows, Observation
from penstock.scaling.advice import advise
from penstock.scaling.offered import offered_rates, routing_ratios
from penstock.scaling.policies.autoscale import Autoscale
from penstock.scaling.policies.policy import ScalingContext
from penstock.sim.network import Network
from penstock.sim.run import simulate
from penstock.sim.scenario import ClusterSpec, OperatorSpec, Scenario, SourceSpec, Upstream
from penstock.sim.service import ServiceTime
from penstock.workloads.profiles import constant

Edge = tuple[str, str]


def context(
    arrivals: Mapping[str, float], served: Mapping[str, float], sent: Mapping[Edge, float],
    edges: tuple[Edge, ...] = (),
) -> ScalingContext:  # fmt: skip
    components = tuple(
        ComponentObservation(name, (name,), rate, 0.01, 1, 0.0, served_rate_per_s=served[name])
        for name, rate in arrivals.items()
    )
    seen = Observation(
        10.0, 10.0, 10.0, 0.0, components=components, flows=Flows(tuple(sent), tuple(sent.values()))
    )
    running = dict.fromkeys(arrivals, 1)
    return ScalingContext(
        (seen,), ScalingPlan(running, len(running)), Limits(1, 100, 5.0),
        edges or tuple(sent), "space",
    )  # fmt: skip


def test_a_loop_into_the_first_component_has_its_steady_state() -> None:
    """Ten rows a second from outside, a fifth comes back: 10 / (1 - 0.2) at both, once unblocked.

    Now `work` serves 5 of what comes and `check` returns 1.2 of 6.
    """
    given = context(
        {"work": 11.2, "check": 5.0},
        {"work": 5.0, "check": 6.0},
        {("work", "check"): 5.0, ("check", "work"): 1.2},
    )
    found = offered_rates(given, given.window[-1])
    assert found == {"work": pytest.approx(12.5), "check": pytest.approx(12.5)}


def test_unequal_upstreams_keep_their_own_ratios() -> None:
    """A parser that passes all and a filter that passes a tenth feed one sink; the parser lags."""
    given = context(
        {"parse": 20.0, "filter": 10.0, "sink": 11.0},
        {"parse": 10.0, "filter": 10.0, "sink": 11.0},
        {("parse", "sink"): 10.0, ("filter", "sink"): 1.0},
    )
    assert offered_rates(given, given.window[-1])["sink"] == pytest.approx(20 + 1)


def test_a_branch_that_gets_nothing_does_not_hide_the_others() -> None:
    given = context(
        {"a": 20.0, "b": 10.0, "idle": 0.0, "c": 0.0},
        {"a": 10.0, "b": 10.0, "idle": 0.0, "c": 0.0},
        {("a", "b"): 10.0, ("idle", "c"): 0.0},
    )
    assert offered_rates(given, given.window[-1]) == {"a": 20, "b": 20, "idle": 0, "c": 0}


def test_without_counts_upstreams_share_a_ratio() -> None:
    edges = (("a", "c"), ("b", "c"))
    given = context({"a": 10.0, "b": 30.0, "c": 20.0}, {"a": 10.0, "b": 30.0, "c": 20.0}, {}, edges)
    ratios = routing_ratios(given, given.window[-1])
    assert ratios == {("a", "c"): pytest.approx(0.5), ("b", "c"): pytest.approx(0.5)}


def hub(share: float | None) -> dict[str, object]:
    """Thirty rows a second for a hub that is short of tasks, and three sinks that share them."""
    upstream: object = "hub" if share is None else {"name": "hub", "share": share}
    sinks = [
        {
            "name": name, "upstreams": [upstream], "received": [100.0], "latency_s": 0.09,
            "parallelism": 1,
        }
        for name in ("one", "two", "three")
    ]  # fmt: skip
    first = {"name": "hub", "received": [300.0], "latency_s": 0.01, "parallelism": 1}
    return {"period_s": 10.0, "operators": [first, *sinks]}


@pytest.mark.parametrize("policy", ["autoscale", "autoscale_plus"])
def test_sinks_that_share_a_hub_get_what_their_share_needs(policy: str) -> None:
    """Hundred rows of 90 ms in 10 s keep 0.9 of a task busy, three hundred 2.7."""
    options = {"alpha": 1.0} if policy == "autoscale_plus" else {}
    divided = advise({"policy": policy, **hub(1 / 3), **options})
    assert divided["parallelism"] == {"hub": 1, "one": 1, "two": 1, "three": 1}
    copied = advise({"policy": policy, **hub(None), **options})
    assert copied["parallelism"] == {"hub": 1, "one": 3, "two": 3, "three": 3}


def star() -> Scenario:
    exponential = ServiceTime("exponential", 0.002)
    sinks = tuple(
        OperatorSpec(
            name, (Upstream("hub", 1 / 3),), ServiceTime("exponential", 0.09), processors=2
        )
        for name in ("one", "two", "three")
    )
    return Scenario(
        "star", 120.0, 30.0, (SourceSpec("rows", constant(30.0)),),
        (OperatorSpec("hub", (Upstream("rows"),), exponential), *sinks),
        ClusterSpec(7, 4, 60), "space", period_s=10.0,
    )  # fmt: skip


def test_the_simulator_counts_what_goes_along_each_edge() -> None:
    scenario = star()
    result = simulate(scenario, Autoscale(), guards=())
    newest = result.observations[-1]
    sent = dict(zip(newest.flows.edges, newest.flows.rates_per_s, strict=True))
    assert set(sent) == set(Network(scenario).component_edges())
    assert sum(sent.values()) == pytest.approx(30.0, rel=0.15)
    assert all(rate == pytest.approx(10.0, rel=0.4) for rate in sent.values())
    assert all(one.parallelism <= 3 for one in newest.components)
