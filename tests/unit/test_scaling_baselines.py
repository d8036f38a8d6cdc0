"""The policies DRS and AUTOSCALE are compared with: incremental, ds2, spark-dra, rlearn."""

from dataclasses import replace

import numpy as np
import pytest

from penstock.errors import InvalidInput
from penstock.model.decision import Limits, ScalingPlan
from penstock.model.observation import (
    BatchObservation,
    ComponentObservation,
    KeyGroups,
    NodeObservation,
    Observation,
    OperatorObservation,
)
from penstock.scaling.demand import demands
from penstock.scaling.policies.autoscale_plus import AutoscalePlus
from penstock.scaling.policies.ds2 import Ds2
from penstock.scaling.policies.incremental import Incremental
from penstock.scaling.policies.knowledge import WHOLE, Knowledge, Sample, samples_of
from penstock.scaling.policies.policy import ScalingContext
from penstock.scaling.policies.rlearn import Rlearn
from penstock.scaling.policies.spark_dra import SparkDra

SERVICE_S = 0.01


def period(
    at: int,
    rate: float,
    processors: int,
    backlog: float = 0.0,
    busy_s: float = 1.0,
    tasks: int | None = None,
) -> Observation:
    groups = None
    if tasks is not None:
        groups = KeyGroups(np.ones(tasks), np.full(tasks, np.nan), np.full(tasks, ""))
    return Observation(
        at_s=10.0 * (at + 1),
        period_s=10.0,
        arrival_rate_per_s=rate,
        backlog_rows=backlog,
        components=(
            ComponentObservation(
                "a", ("a",), rate, SERVICE_S, processors, rate * SERVICE_S * 10, key_groups=groups
            ),
        ),
        nodes=tuple(NodeObservation(f"n{i}", 1, busy_s) for i in range(processors)),
        batches=BatchObservation(10, 1.0, 0.2, rate),
    )


def context(
    rates: list[float], processors: int, most: int = 64, **measured: float
) -> ScalingContext:
    window = tuple(
        period(at, rate, processors, **measured)  # type: ignore[arg-type]
        for at, rate in enumerate(rates)
    )
    return ScalingContext(window, ScalingPlan({"a": processors}, processors), Limits(1, most, 5.0))


def wanted(policy: Incremental | Ds2 | SparkDra | Rlearn, given: ScalingContext) -> int:
    return policy.decide(given).plan.processors


def test_incremental_moves_by_one() -> None:
    policy = Incremental(0.5, 0.8)
    assert wanted(policy, context([900.0], 4)) == 5
    assert wanted(policy, context([280.0], 4)) == 4
    assert wanted(policy, context([100.0], 4)) == 3
    assert wanted(policy, context([10.0], 1)) == 1


def test_incremental_does_not_step_in_only_to_step_out_again() -> None:
    assert wanted(Incremental(0.5, 0.8), context([90.0], 2)) == 2  # 0.45 would become 0.9


def test_incremental_counts_what_waits() -> None:
    # 280 rows/s are 0.7 of four processors; 3000 rows within 5 s are 600 rows/s more.
    assert wanted(Incremental(), context([280.0], 4, backlog=3000.0)) == 5
    # 420 rows are under way in batches of 280 rows, not behind.
    assert wanted(Incremental(), context([280.0], 4, backlog=420.0)) == 4


def test_a_backlog_without_arrivals_is_worked_off_at_the_known_cost() -> None:
    given = context([280.0, 280.0], 4)
    ended = replace(
        period(1, 0.0, 4), backlog_rows=10_000.0, batches=BatchObservation(0, 0.0, 0.0, 0.0)
    )
    decision = Incremental().decide(replace(given, window=(given.window[0], ended)))
    assert decision.plan.processors == 5


def test_ds2_reaches_the_target_in_one_step() -> None:
    policy = Ds2(target_utilisation=0.7, restart_s=0.0)
    # Load 14 at a utilisation of 0.7 is twenty processors.
    assert wanted(policy, context([1400.0] * 12, 4)) == 20


def test_ds2_asks_for_catch_up_and_restart() -> None:
    policy = Ds2(catch_up_s=30.0, restart_s=6.0)
    # 1400 rows/s: 20 for utilisation, 14 x 6 / 30 = 2.8 for the restart,
    # and 60,000 rows less 2800 under way x 10 ms / 30 s = 19.1 for the backlog.
    assert wanted(policy, context([1400.0] * 12, 4, most=100, backlog=60_000.0)) == 42


def test_ds2_keeps_still_within_its_band() -> None:
    policy = Ds2(target_utilisation=0.7, utilisation_band=0.2, restart_s=0.0)
    for processors in (8, 10, 14):  # load 7: utilisation 0.875, 0.7, 0.5
        assert wanted(policy, context([700.0] * 12, processors)) == processors
    assert wanted(policy, context([700.0] * 12, 15)) == 10


def test_ds2_scales_down_only_to_the_largest_need_of_the_window() -> None:
    policy = Ds2(restart_s=0.0, scale_down_window_s=60.0, max_scale_down_share=0.9)
    quiet = [140.0] * 12
    assert wanted(policy, context(quiet, 20)) == 2
    assert wanted(policy, context([*quiet[:-3], 700.0, 140.0, 140.0], 20)) == 10
    assert wanted(policy, context(quiet[:5], 20)) == 20  # not yet a whole window
    assert wanted(Ds2(restart_s=0.0), context(quiet, 20)) == 8  # at most 60% at once


def test_ds2_does_not_scale_down_while_a_backlog_is_worked_off() -> None:
    policy = Ds2(catch_up_s=3000.0, restart_s=0.0)
    assert wanted(policy, context([140.0] * 12, 20, backlog=50_000.0)) == 20


def test_ds2_sees_through_a_bottleneck() -> None:
    """The first serves 100 of 400 rows/s, so the second gets 100; it must be ready for 400."""

    def seen(at: int) -> Observation:
        first = ComponentObservation("a", ("a",), 400.0, 0.01, 1, 10.0, backlog_rows=0.0)
        second = ComponentObservation("b", ("b",), 100.0, 0.02, 2, 20.0)
        return Observation(10.0 * (at + 1), 10.0, 400.0, 0.0, components=(first, second))

    given = ScalingContext(
        tuple(seen(at) for at in range(8)),
        ScalingPlan({"a": 1, "b": 2}, 3),
        Limits(1, 64, 5.0),
        edges=(("a", "b"),),
        sharing="space",
    )
    plan = Ds2(restart_s=0.0).decide(given).plan
    assert plan.parallelism == {"a": 6, "b": 12}  # 4 / 0.7 and 8 / 0.7


def test_dra_doubles_while_tasks_wait_and_stops_at_their_number() -> None:
    policy = SparkDra(backlog_timeout_s=10.0, sustained_timeout_s=10.0)

    def after(periods: int, tasks: int) -> int:
        return wanted(policy, context([100.0] * periods, 2, tasks=tasks))

    assert [after(n, 1000) for n in (1, 2, 3, 4)] == [3, 4, 6, 10]
    assert after(4, 5) == 5
    assert after(4, 2) == 2


def test_dra_removes_only_executors_that_ran_nothing() -> None:
    policy = SparkDra(idle_timeout_s=60.0)
    assert wanted(policy, context([0.0] * 12, 8, busy_s=0.0)) == 1
    assert wanted(policy, context([0.0] * 5, 8, busy_s=0.0)) == 8
    assert wanted(policy, context([10.0] * 12, 8)) == 8  # hardly busy is not idle


def trained(cost: float = 0.5) -> Knowledge:
    samples = [
        Sample(WHOLE, rate, degree, rate * SERVICE_S < 0.9 * degree)
        for rate in (50, 100, 200, 400, 800)
        for degree in (1, 2, 4, 6, 10)
    ]
    return Knowledge(cost=cost).learnt(samples)


def test_rlearn_takes_the_cheapest_degree_that_kept_up() -> None:
    policy = Rlearn(trained(), refine=False)
    assert wanted(policy, context([100.0] * 12, 1)) == 2
    assert wanted(policy, context([400.0] * 12, 1)) == 6
    assert wanted(policy, context([50.0] * 12, 10)) == 1
    assert wanted(policy, context([90_000.0] * 12, 1)) == 10  # beyond all it learnt


def test_rlearn_hardly_sees_a_brief_peak() -> None:
    policy = Rlearn(trained(), refine=False)
    assert wanted(policy, context([100.0] * 5 + [150.0], 2)) == 2
    assert wanted(policy, context([150.0] * 6, 2)) == 4


def test_rlearn_unlearns_what_fails() -> None:
    failing = samples_of([period(at, 100.0, 2, backlog=9000.0) for at in range(20)], 5.0, True)
    assert not any(sample.kept_up for sample in failing)
    assert trained().best_degree(WHOLE, 100.0) == 2
    assert trained().learnt(failing).best_degree(WHOLE, 100.0) == 4


def test_rlearn_without_knowledge_keeps_what_runs() -> None:
    given = context([100.0] * 3, 3, backlog=9000.0)
    assert wanted(Rlearn(), given) == 3


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        (Incremental, {"min_ratio": 0.9, "max_ratio": 0.8}),
        (Ds2, {"target_utilisation": 0.0}),
        (Ds2, {"utilisation_band": 0.8}),
        (Ds2, {"catch_up_s": 0.0}),
        (SparkDra, {"idle_timeout_s": 0.0}),
        (Knowledge, {"bin_ratio": 1.0}),
    ],
)
def test_wrong_options_are_refused(kind: type, options: dict[str, float]) -> None:
    with pytest.raises(InvalidInput):
        kind(**options)


def test_load_is_of_rows_offered_not_of_those_that_batches_took() -> None:
    """400 rows/s come, batches took 100 of them: the load is that of 400."""
    seen = period(0, 400.0, 1)
    seen = replace(
        seen,
        components=(replace(seen.components[0], arrival_rate_per_s=400.0),),
        operators=(OperatorObservation("a", 100.0, 100.0),),
        batches=BatchObservation(1, 10.0, 0.2, 1000.0),
    )
    given = ScalingContext((seen,), ScalingPlan({"a": 1}, 1), Limits(1, 64, 5.0))
    assert demands(given).load == pytest.approx(4.0)
    assert wanted(Ds2(restart_s=0.0), given) == 6
    assert wanted(AutoscalePlus(), given) == 5


def test_incremental_steps_by_whole_executors() -> None:
    policy = Incremental(0.5, 0.8, step=2)
    assert wanted(policy, context([90.0], 8)) == 6
    assert wanted(policy, context([390.0], 4)) == 6
    assert wanted(policy, context([10.0], 2)) == 2
