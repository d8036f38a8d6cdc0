"""DRS over components that run apart in batches: what it learns, and that it settles."""

from dataclasses import replace

import numpy as np
import pytest

from penstock.model.batch_overhead import BatchOverhead
from penstock.model.decision import Limits, ScalingPlan
from penstock.model.observation import (
    ComponentObservation,
    Flows,
    LatencyObservation,
    Observation,
)
from penstock.scaling.models.hops import Hops
from penstock.scaling.models.network import network
from penstock.scaling.policies.drs import Drs
from penstock.scaling.policies.drs_hops import learn_hops
from penstock.scaling.policies.policy import ScalingContext

# Patterns with their loop (Fu et al. 2017, s. V-A): a fifth of what detect gets is its own.
NAMES = ("detect", "generate", "report")
RATE = {"generate": 100.0, "detect": 250.0, "report": 20.0}
WORK_S = {"generate": 0.012, "detect": 0.01, "report": 0.001}
OWN_S = {"generate": 0.3, "detect": 0.4, "report": 0.2}
EDGES = (("generate", "detect"), ("detect", "detect"), ("detect", "report"))
FLOWS = Flows(EDGES, (200.0, 50.0, 20.0))
PLAN = {"generate": 2, "detect": 4, "report": 1}


def truth() -> Hops:
    """As such batches are, whatever a policy thinks."""
    seen = ScalingContext((period(0, PLAN, 1.0),), ScalingPlan(PLAN, 7), LIMITS, EDGES, "space")
    model = learn_hops(seen, NAMES, BatchOverhead(9.9), 0.0)
    return replace(model, overheads=tuple(BatchOverhead(OWN_S[name]) for name in NAMES))


def latency_s(plan: dict[str, int], model: Hops) -> float:
    rates = np.array([RATE[name] for name in NAMES])
    mu = 1 / np.array([WORK_S[name] for name in NAMES])
    return model.latency_s(network(NAMES, rates, mu, 100.0), np.array([plan[n] for n in NAMES]))


LIMITS = Limits(3, 16, 4.0)


def period(at: int, plan: dict[str, int], mean_s: float) -> Observation:
    components = tuple(
        ComponentObservation(
            name, (name,), RATE[name], WORK_S[name], plan[name], 1.0,
            batch_s=OWN_S[name] + 40.0 * WORK_S[name] / plan[name], batch_rows=40.0,
        )
        for name in NAMES
    )  # fmt: skip
    return Observation(
        at_s=5.0 * at, period_s=5.0, arrival_rate_per_s=100.0, backlog_rows=0.0,
        components=components, flows=FLOWS,
        latency=LatencyObservation(500, mean_s, mean_s, mean_s, 1.0),
    )  # fmt: skip


def test_who_sends_to_whom_and_what_batches_cost_is_learnt() -> None:
    seen = ScalingContext((period(1, PLAN, 2.0),), ScalingPlan(PLAN, 7), LIMITS, EDGES, "space")
    model = learn_hops(seen, NAMES, BatchOverhead(9.9), 0.0)
    assert [one.fixed_s for one in model.overheads] == pytest.approx([0.4, 0.3, 0.2])
    assert model.way.senders == ((0, 1), (), (0,))
    # What is reported was detected, a fifth of that twice, a fifth of these three times.
    assert model.way.passes == pytest.approx((1 / 0.8, 1.0, 1.0))


@pytest.mark.parametrize("start", [PLAN, {"generate": 2, "detect": 3, "report": 1}])
def test_drs_settles_on_a_split_that_keeps_the_bound_and_stays(start: dict[str, int]) -> None:
    model, plan, window = truth(), dict(start), list[Observation]()
    changes = []
    for at in range(1, 40):
        window.append(period(at, plan, latency_s(plan, model)))
        current = ScalingPlan(plan, sum(plan.values()))
        context = ScalingContext(tuple(window[-30:]), current, LIMITS, EDGES, "space")
        decided = Drs().decide(context).plan
        if dict(decided.parallelism) != plan:
            changes.append(at)
            plan = dict(decided.parallelism)
    assert len(changes) <= 4
    assert all(at < 20 for at in changes)
    assert latency_s(plan, model) <= LIMITS.max_latency_s


def test_the_estimate_is_what_is_measured_where_batches_are_as_measured() -> None:
    model = truth()
    seen = period(1, PLAN, latency_s(PLAN, model))
    context = ScalingContext((seen,) * 1, ScalingPlan(PLAN, 7), replace(LIMITS, max_latency_s=1.0),
                             EDGES, "space")  # fmt: skip
    assert "hops" in str(Drs().decide(context).reasons)
    assert "mmk" in str(Drs(model="mmk").decide(context).reasons)


@pytest.mark.parametrize("seed", [1, 2])
def test_noise_does_not_move_processors_to_and_fro(seed: int) -> None:
    """Batches and latencies that vary by 40%: a better split must be better by more than that."""
    rng, model, plan = np.random.default_rng(seed), truth(), dict(PLAN)
    window, changes = list[Observation](), 0
    for at in range(1, 80):
        seen = period(at, plan, latency_s(plan, model) * rng.uniform(0.6, 1.4))
        components = tuple(
            replace(
                one,
                service_time_s=one.service_time_s * rng.uniform(0.8, 1.2),
                batch_s=one.batch_s * rng.uniform(0.6, 1.4),
            )
            for one in seen.components
        )
        window.append(replace(seen, components=components))
        current = ScalingPlan(plan, sum(plan.values()))
        context = ScalingContext(tuple(window[-60:]), current, LIMITS, EDGES, "space")
        wanted = dict(Drs().decide(context).plan.parallelism)
        changes, plan = changes + (wanted != plan), wanted
    assert changes <= 3
