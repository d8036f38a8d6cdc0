"""A recorded run in the simulator: calibrated on it, near it, and right about what it did not."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from contract.fakes import observation
from penstock.config import Settings
from penstock.control.actions import Outcome, SetExecutors
from penstock.control.history.store import HistoryStore
from penstock.control.records import ActionRecord, RunRecord
from penstock.errors import InvalidInput
from penstock.model.observation import (
    BatchObservation,
    ComponentObservation,
    LatencyObservation,
    NodeObservation,
    Observation,
)
from penstock.scaling.policies.registry import policy
from penstock.scaling.policies.static import Static
from penstock.sim.calibration import (
    costs,
    overheads,
    recorded_load,
    scenario_of,
    startup_s,
    usable,
)
from penstock.sim.replay import (
    Candidate,
    best,
    candidates,
    latency_of,
    periods_after,
    policies_named,
    replayed,
    sizes_between,
    trusted_from_s,
)
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
from penstock.sim.world import SimulatedWorld
from penstock.workloads.profiles import steps

TRUTH = Scenario(
    name="road",
    duration_s=240.0,
    max_latency_s=5.0,
    sources=(SourceSpec("reports", steps([(80, 50.0), (80, 200.0), (80, 50.0)])),),
    operators=(
        OperatorSpec("look-up", (Upstream("reports"),), ServiceTime("lognormal", 0.009, 0.5),
                     selectivity=0.4),
        OperatorSpec("sum", (Upstream("look-up"),), ServiceTime("exponential", 0.002)),
    ),
    cluster=ClusterSpec(1, 1, 4, 1, startup_s=3.0),
    batch=BatchCost(0.3, 0.02),
    seed=5,
)  # fmt: skip
RUN = RunRecord("road", "incremental", 0.0, 5.0, 5.0, executors_max=4)


class Recording:
    """The truth under a policy, as its history tells it."""

    def __init__(self, folder: Path) -> None:
        with HistoryStore(str(folder / "h.sqlite")) as store:
            kept = store.begin(RUN)
            simulate(TRUTH, policy("incremental"), history=kept)
            self.observations = store.read_observations(kept.run_id)
            self.actions = store.read_actions(kept.run_id)


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Recording:
    return Recording(tmp_path_factory.mktemp("history"))


def test_a_run_replayed_as_it_was_has_the_latency_it_had(recording: Recording) -> None:
    fidelity, result = replayed(RUN, recording.observations, recording.actions, seed=1)
    # Where batches begin differs by chance, and while the load rises that carries on.
    assert fidelity.mean_error < 0.2
    assert fidelity.p95_error < 0.2
    assert result.executors.tolist() == [len(o.nodes) for o in recording.observations]


def slowly_started(observations: list[Observation]) -> list[Observation]:
    """As a run on Spark begins: rows wait for code to be compiled, and batches cost far more."""
    slow = [
        replace(
            o,
            latency=replace(o.latency, mean_s=wait_s, p95_s=1.2 * wait_s, max_s=1.3 * wait_s),
            batches=replace(o.batches, mean_duration_s=12.0, mean_overhead_s=12.0),
        )
        for o, wait_s in zip(observations, (25.0, 20.0, 15.0, 10.0), strict=False)
        if o.latency is not None and o.batches is not None
    ]
    return slow + observations[len(slow) :]


def test_start_up_is_left_out_by_itself(recording: Recording) -> None:
    slow = slowly_started(recording.observations)
    whole = periods_after(RUN, slow, skip_s=0.0)
    assert whole == slow
    assert not replayed(RUN, whole, recording.actions, seed=1)[0].within(0.3)
    left = periods_after(RUN, slow)
    assert replayed(RUN, left, recording.actions, seed=1)[0].within(0.3)
    assert left == slow[len(slow) - len(left) :]


def test_it_is_told_how_much_to_leave_out_where_that_is_enough(recording: Recording) -> None:
    slow = slowly_started(recording.observations)
    more_s = trusted_from_s(RUN, slow, recording.actions, seed=1, tolerance=0.3)
    assert more_s is not None
    left = periods_after(RUN, slow, more_s)
    assert replayed(RUN, left, recording.actions, seed=1)[0].within(0.3)
    wrong = [
        replace(o, latency=replace(o.latency, mean_s=90.0)) for o in slow if o.latency is not None
    ]
    assert trusted_from_s(RUN, wrong, recording.actions, seed=1, tolerance=0.3) is None


def test_too_little_after_the_start_up_is_refused(recording: Recording) -> None:
    with pytest.raises(InvalidInput, match="after the start-up; a replay needs at least 6"):
        periods_after(RUN, recording.observations[:7])
    with pytest.raises(InvalidInput, match="after the first 230 s; a replay needs at least 6"):
        periods_after(RUN, recording.observations, 230.0)


def test_what_the_run_did_not_do_is_foretold(recording: Recording) -> None:
    """Against the truth that the recording was made of."""
    scenario = scenario_of(RUN, recording.observations, recording.actions)
    candidates_by_name = {
        c.name: c for c, _ in candidates(scenario, Settings(), ("ds2",), (2, 3, 4))
    }
    for size in (2, 3, 4):
        cluster = ClusterSpec(size, size, size, 1)
        true = simulate(replace(TRUTH, cluster=cluster), Static())
        found = candidates_by_name[f"static {size}"]
        assert found.latency_mean_s == pytest.approx(true.results.mean_s, rel=0.15)
        assert found.executor_seconds == true.executor_seconds
        assert found.in_time_share == pytest.approx(true.in_time_share, abs=0.05)
    assert candidates_by_name["ds2"].reconfigurations > 0


def test_every_row_of_the_sources_is_one_result(recording: Recording) -> None:
    scenario = scenario_of(RUN, recording.observations, recording.actions, rate_factor=2.0)
    arrived = sum(o.arrival_rate_per_s * o.period_s for o in recording.observations)
    for found, result in candidates(scenario, Settings(), (), (4,)):
        assert result.results.count + result.held_rows == pytest.approx(2 * arrived, rel=0.001)
        assert found.late_rows <= result.arrived_rows


def node(number: int) -> NodeObservation:
    return NodeObservation(str(number), 2, 1.0)


def seen(at_s: float, executors: int, overhead_s: float = 0.5) -> Observation:
    return observation(
        at_s,
        components=(
            ComponentObservation("a", ("a",), 100.0, 0.01, 2, 1.0),
            ComponentObservation("b", ("b",), 25.0, 0.04, 2, 1.0),
        ),
        nodes=tuple(map(node, range(executors))),
        latency=LatencyObservation(10, 1.0, 2.0, 3.0, 1.0),
        batches=BatchObservation(2, 1.0, overhead_s, 100.0),
    )


def test_costs_are_weighted_by_rows_and_told_for_a_row_of_the_sources() -> None:
    first, second = costs([seen(5.0, 1), seen(10.0, 1)])
    assert (first.name, first.service_time_s, first.visits) == ("a", pytest.approx(0.01), 1.0)
    assert (second.name, second.service_time_s, second.visits) == ("b", pytest.approx(0.04), 0.25)


def test_overheads_are_those_measured_and_follow_their_line_beyond() -> None:
    cost = overheads([seen(5.0, 1, 0.4), seen(10.0, 2, 0.6), seen(15.0, 2, 0.8)], 8)
    assert cost.overhead_s(2) == pytest.approx(0.4)
    assert cost.overhead_s(4) == pytest.approx(0.7)
    assert cost.overhead_s(8) > cost.overhead_s(4)


def test_start_up_is_from_the_act_to_the_executor() -> None:
    periods = [seen(5.0, 1), seen(10.0, 1), seen(15.0, 1), seen(20.0, 2), seen(25.0, 2)]
    acted = [ActionRecord(10.0, Outcome(SetExecutors(2), True, "1 new"))]
    assert startup_s(periods, acted) == 7.5
    assert startup_s(periods, []) == 3.0


def test_what_a_start_costs_the_batches_is_learnt_and_kept_apart_from_what_they_cost() -> None:
    slowed = replace(TRUTH, cluster=replace(TRUTH.cluster, pause_s=1.0), rates_by_batch=True)
    world, seen, acted = SimulatedWorld(slowed), list[Observation](), list[ActionRecord]()
    while world.wait_s(5.0):
        seen.append(world.observe())
        if world.now_s() == 60.0:
            acted.append(ActionRecord(60.0, world.act(SetExecutors(3))))
    run = RunRecord("road", "static", 0.0, 5.0, 5.0, 1, False, executors_min=1, executors_max=4)
    found = scenario_of(run, seen, acted)
    assert 0.6 < found.cluster.pause_s <= 1.0  # a mean of batches that were slow and some that not
    assert found.batch.overhead_s(3) == pytest.approx(TRUTH.batch.overhead_s(3), rel=0.05)
    assert found.rates_by_batch
    again = scenario_of(run, seen, [])
    assert again.cluster.pause_s == 0


def test_the_load_is_the_recorded_one_period_by_period() -> None:
    profile = recorded_load([observation(1005.0), observation(1010.0, arrival_rate_per_s=300.0)])
    assert profile.rows == pytest.approx(5 * 100 + 5 * 300)
    assert profile.rate_per_s(np.array([1.0, 6.0])).tolist() == [100.0, 300.0]


def test_periods_are_put_together_by_their_results() -> None:
    many = observation(5.0, latency=LatencyObservation(960, 1.0, 1.0, 1.0, 1.0))
    few = observation(10.0, latency=LatencyObservation(40, 9.0, 9.0, 9.0, 0.0))
    assert latency_of([many, few]) == (pytest.approx(1.32), pytest.approx(1.0))
    assert str(latency_of([observation(5.0)])) == "(nan, nan)"


@pytest.mark.parametrize(
    ("periods", "sentence"),
    [
        ([], "holds 0 measured periods; a replay needs at least 6"),
        ([observation(5.0 * n) for n in range(9)], "holds no batches"),
        ([replace(seen(5.0 * n, 1), latency=None) for n in range(9)], "holds no latency"),
    ],
)
def test_what_cannot_be_replayed_is_refused(periods: list[Observation], sentence: str) -> None:
    with pytest.raises(InvalidInput, match=sentence):
        usable(periods, RUN)


def test_the_cheapest_that_keeps_the_promise_is_advised() -> None:
    def candidate(name: str, share: float, cost: float, changes: int = 0) -> Candidate:
        return Candidate(name, share, 0, 0, 1.0, 2.0, cost, changes, 1)

    found = [candidate("a", 0.99, 300), candidate("b", 0.96, 200, 4), candidate("c", 0.5, 100)]
    advised = best(found, 0.95)
    assert advised is not None
    assert advised.name == "b"
    assert best(found, 0.999) is None


def test_all_means_every_policy_but_the_static_sizes() -> None:
    assert "static" not in policies_named("all")
    assert policies_named("drs, ds2,drs") == ("drs", "ds2")
    assert sizes_between(2, 2) == (2,)
