"""The last resort: only when nothing else is left, within what is allowed, and undone again."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from contract.fakes import FakeActuator, FakeClock, FakeHistory, FakeMeasurer, FakePolicy
from contract.loops import loop_over
from penstock.config import Settings
from penstock.control.actions import SetExecutors, ShedLoad, UseVariants
from penstock.control.allocating import Allocating, AllocationRules
from penstock.control.last_resort import LastResort
from penstock.control.step import Step
from penstock.control.summary import RunTally
from penstock.errors import InvalidInput
from penstock.model.decision import Limits
from penstock.model.observation import (
    BatchObservation,
    ComponentObservation,
    KeyGroups,
    LatencyObservation,
    NodeObservation,
    Observation,
)
from penstock.model.topology import Topology
from penstock.scaling.last_resort import (
    RELAXED,
    LastResortPlan,
    LastResortRules,
    Situation,
    decide_last_resort,
    relative_error,
)
from penstock.spark.measure.shed_rows import ShedRowsReporter
from penstock.spark.run.before_start import check_attached, check_last_resort

RULES = LastResortRules(("lookup", "score"), shed_at_most=0.3, after_s=10, undo_after_s=20)
LATE = Situation(4, 6.0, late_for_s=10, late="40% of results within 5 s", loads={"score": 5.0})
IN_TIME = Situation(4, 2.0, in_time_for_s=20)


def test_nothing_is_done_before_the_bound_was_missed_long_enough() -> None:
    assert (
        decide_last_resort(LastResortPlan(), replace(LATE, late_for_s=9.9), RULES).plan
        == LastResortPlan()
    )
    assert decide_last_resort(LastResortPlan(), IN_TIME, RULES).plan == LastResortPlan()


def test_cheaper_forms_come_first_the_heaviest_before_the_others() -> None:
    first = decide_last_resort(LastResortPlan(), LATE, RULES)
    assert first.plan == LastResortPlan(("score",))
    assert "score in its cheaper form" in first.reasons[0]
    assert "all 4 processors in use" in first.reasons[0]
    assert decide_last_resort(first.plan, LATE, RULES).plan == LastResortPlan(("score", "lookup"))


def test_as_much_is_shed_as_the_load_asks_for_and_never_more_than_is_allowed() -> None:
    forms = LastResortPlan(("score", "lookup"))
    little = decide_last_resort(forms, replace(LATE, load=3.6), RULES)
    assert little.plan.shed == pytest.approx(0.15)  # 1 - 0.8 * 4 / 3.6, in steps of 0.05
    assert little.infeasible is None
    much = decide_last_resort(forms, LATE, RULES)
    assert much.plan.shed == 0.3
    assert much.infeasible is not None
    assert "50% would be needed" in much.infeasible
    more = decide_last_resort(much.plan, LATE, RULES)
    assert more.plan == much.plan
    assert "all that is allowed" in (more.infeasible or "")


def test_nothing_is_shed_that_the_user_did_not_allow() -> None:
    rules = replace(RULES, shed_at_most=0.0)
    decision = decide_last_resort(LastResortPlan(("lookup", "score")), LATE, rules)
    assert decision.plan.shed == 0
    assert decision.infeasible is not None


def test_nothing_changes_while_the_load_is_not_known() -> None:
    for situation in (LATE, IN_TIME):
        for plan in (LastResortPlan(), LastResortPlan(("score",)), LastResortPlan((), 0.3)):
            assert decide_last_resort(plan, replace(situation, load=math.nan), RULES).plan == plan


def test_a_slow_start_is_no_reason() -> None:
    scene = Scene(LastResortRules(("lookup",), 0.2, after_s=10))
    cold = [seen(1000 + 5 * k, late=True, cost_s=math.nan) for k in range(5)]
    scene.see(*cold, seen(1025, late=True), seen(1030, late=True))
    assert scene.actuator.acted == []
    scene.see(seen(1035, late=True))
    assert scene.actuator.acted == [UseVariants(("lookup",))]


def test_shedding_is_undone_before_forms_and_forms_in_reverse() -> None:
    plan = LastResortPlan(("score", "lookup"), 0.3)
    in_time = replace(IN_TIME, full_load={"score": 5.0, "lookup": 2.5})
    plan = decide_last_resort(plan, in_time, RULES).plan
    assert plan == LastResortPlan(("score", "lookup"))
    plan = decide_last_resort(plan, in_time, RULES).plan
    assert plan == LastResortPlan(("score",))
    # In its full form it would take 5 of 4 processors: it stays as it is.
    assert decide_last_resort(plan, in_time, RULES).plan == plan
    assert (
        decide_last_resort(plan, replace(in_time, full_load={"score": 2.0}), RULES).plan
        == LastResortPlan()
    )


def test_what_is_undone_is_not_wanted_again_at_the_same_load() -> None:
    """Hysteresis: a share that is given up at some load is below what that load would ask for."""
    for load in np.arange(0.5, 8.0, 0.25):
        back = decide_last_resort(
            LastResortPlan((), 0.3), replace(IN_TIME, load=float(load)), RULES
        ).plan
        if back.shed < 0.3:
            assert load * (1 - back.shed) <= RELAXED * 4 + 1e-9


def test_the_error_of_counts_and_sums_is_that_of_sampling() -> None:
    rng = np.random.default_rng(7)
    rows, share = 2_000, 0.25
    values = rng.exponential(3.0, rows)
    kept = rng.random((4_000, rows)) >= share
    counts = kept.sum(axis=1) / (1 - share)
    sums = (kept * values).sum(axis=1) / (1 - share)
    variation = values.std() / values.mean()
    assert 1.96 * counts.std() / rows == pytest.approx(relative_error(share, rows), rel=0.05)
    recorded = relative_error(share, rows, variation)
    assert 1.96 * sums.std() / values.sum() == pytest.approx(recorded, rel=0.05)
    assert relative_error(0.0, 10) == 0
    assert math.isnan(relative_error(0.1, 0))


def seen(at_s: float, late: bool, rate: float = 100.0, cost_s: float = 0.05) -> Observation:
    share, p95_s = (0.4, 9.0) if late else (1.0, 2.0)
    return Observation(
        at_s, 5.0, rate, 0.0,
        components=(ComponentObservation("lookup", ("lookup",), rate, cost_s, 4, 1.0),),
        nodes=tuple(NodeObservation(f"n{k}", 1, 1.0) for k in range(4)),
        latency=LatencyObservation(500, p95_s / 2, p95_s, p95_s, share),
    )  # fmt: skip


class Scene:
    def __init__(self, rules: LastResortRules, executors: int = 4, wanted: int = 4, **more: Any):
        self.actuator, self.history = FakeActuator(total=executors), FakeHistory()
        self.measurer, self.clock, self.policy = FakeMeasurer(), FakeClock(), FakePolicy(wanted)
        self.loop = loop_over(
            self.measurer, self.actuator, policy=self.policy, clock=self.clock,
            history=self.history, limits=Limits(1, 4, 5.0), last_resort=LastResort(rules, 5.0),
            **more,
        )  # fmt: skip

    def see(self, *observations: Observation) -> list[Any]:
        self.measurer.answers += observations
        return [self.loop.step() for _ in observations]


def test_the_loop_resorts_at_the_limit_only_and_tells_numbers_and_reasons() -> None:
    scene = Scene(
        LastResortRules(("lookup",), 0.2, after_s=10, undo_after_s=10), executors=3, wanted=3
    )
    scene.see(*(seen(1000 + 5 * k, late=True) for k in range(6)))
    assert scene.actuator.acted == []  # a fourth executor may still be had

    scene = Scene(LastResortRules(("lookup",), 0.2, after_s=10, undo_after_s=10))
    scene.see(*(seen(1000 + 5 * k, late=True) for k in range(7)))
    assert scene.actuator.acted == [UseVariants(("lookup",)), ShedLoad(0.2)]
    recorded = scene.history.elsewhere
    assert [d.room for d in recorded] == ["last resort"] * 2
    assert recorded[1].numbers["shed"] == 0.2
    assert recorded[1].numbers["error_of_count"] == pytest.approx(relative_error(0.2, 500))
    assert "19 times in 20" in recorded[1].reasons[1]
    scene.see(*(seen(1040 + 5 * k, late=True) for k in range(6)))
    assert [d.what for d in scene.history.elsewhere[2:]] == ["nothing more can be done"]


def test_the_loop_undoes_it_when_the_load_falls_and_lets_no_executor_go_before() -> None:
    scene = Scene(LastResortRules(("lookup",), 0.2, after_s=5, undo_after_s=10), wanted=4)
    scene.see(*(seen(1000 + 5 * k, late=True) for k in range(4)))
    assert scene.actuator.acted == [UseVariants(("lookup",)), ShedLoad(0.2)]
    scene.actuator.acted.clear()
    scene.policy.wanted = [1]
    # In its cheaper form a row costs 10 ms; 20 rows a second took 1 processor in the full form.
    in_time = [seen(1020 + 5 * k, late=False, rate=20.0, cost_s=0.01) for k in range(8)]
    steps = scene.see(*in_time)
    assert scene.actuator.acted[:2] == [ShedLoad(0.0), UseVariants(())]
    assert "undone first" in (steps[0].held_because or "")
    assert scene.actuator.acted[2] == SetExecutors(1)


def test_a_dry_run_only_advises() -> None:
    scene = Scene(LastResortRules(("lookup",), 0.2, after_s=5), dry_run=True)
    scene.see(*(seen(1000 + 5 * k, late=True) for k in range(3)))
    assert scene.actuator.acted == []
    assert scene.history.elsewhere[0].what == "cheaper form -> lookup"


def test_it_waits_for_other_acts_but_not_for_ever() -> None:
    """Key groups that move in a period may help; that they do so always is no help."""
    scene = Scene(
        LastResortRules(("lookup",), after_s=10),
        allocating=Allocating(AllocationRules("milp", tolerance=0.0, time_limit_s=0.02)),
    )

    def skewed(at_s: float, homes: list[str]) -> Observation:
        one = seen(at_s, late=True)
        groups = KeyGroups(np.full(4, 1.0), np.zeros(4), np.array(homes))
        part = replace(one.components[0], key_groups=groups)
        return replace(one, components=(part,), batches=BatchObservation(4, 1.0, 0.5, 100.0))

    away, home = ["n0"] * 4, ["n0", "n1", "n2", "n3"]
    scene.see(*(skewed(1000 + 5 * k, away) for k in range(4)))
    assert {action.NAME for action in scene.actuator.acted} == {"key_groups"}
    scene.see(skewed(1020, home))
    assert scene.actuator.acted[-1] == UseVariants(("lookup",))


def test_a_period_that_tells_nothing_neither_alarms_nor_calms() -> None:
    scene = Scene(LastResortRules(("lookup",), after_s=10))
    quiet = replace(seen(1005, late=True), latency=None)
    scene.see(seen(1000, late=True), quiet, seen(1010, late=True))
    assert scene.actuator.acted == [UseVariants(("lookup",))]


def test_a_summary_says_how_many_rows_were_shed() -> None:
    reporter = ShedRowsReporter()
    counts = [None, 0, 0, 120, 150, 150]
    recorded = [reporter.take(rows, 500.0, 1000.0) for rows in counts]
    assert [decision.what for one in recorded for decision in one] == [
        "120 rows shed, 120 so far",
        "30 rows shed, 150 so far",
    ]
    tally = RunTally()
    for one in recorded:
        tally.take(Step(1000.0, replace(seen(1000.0, late=True), decided=one)))
    assert tally.summary(5.0, 1, 4).shed_rows == 150


@pytest.mark.parametrize(
    ("options", "apart", "said"),
    [
        ({"shed_at_most": 0.2}, True, "shed-at-most is 0.2; that is possible only where"),
        ({"adapt_interval": True}, True, "adapt-interval is true; that is possible only where"),
        ({"shed_at_most": 0.2}, False, "but source 'theirs' cannot do that"),
    ],
)
def test_what_could_never_be_carried_out_is_refused(
    options: dict[str, Any], apart: bool, said: str
) -> None:
    made = Topology("road", max_latency="5s")
    made.source("theirs", lambda session: session.readStream.format("rate").load())
    with pytest.raises(InvalidInput, match=said):
        check_last_resort(made, Settings(**options), apart)
    check_last_resort(made, Settings(), True)
    with pytest.raises(InvalidInput, match="attached query cannot do that"):
        check_attached(Settings(**options))
