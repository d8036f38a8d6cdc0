"""Guards that people of such tools expect: band, window, catch-up, quota, excluded times."""

from dataclasses import replace

import pytest

from penstock.config import Settings
from penstock.control.guards.guard import GuardContext
from penstock.control.guards.limits import Cooldown, ExcludedTimes, Quota
from penstock.control.guards.stability import CatchUp, ScaleDownWindow, UtilisationBand
from penstock.control.guards.standard import standard_guards
from penstock.errors import InvalidInput
from penstock.model.day_spans import read_spans
from penstock.model.decision import Limits, ScalingPlan
from penstock.model.observation import ComponentObservation, LatencyObservation, Observation
from penstock.scaling.policies.registry import names


def plan(processors: int) -> ScalingPlan:
    return ScalingPlan({"parse": processors}, processors)


def context(
    now: int = 4, rate: float = 100.0, backlog: float = 0.0, mean_s: float = 1.0
) -> GuardContext:
    seen = Observation(
        100.0, 5.0, rate, backlog,
        components=(ComponentObservation("parse", (), rate, 0.02, now, 0.0),),
        latency=LatencyObservation(10, mean_s, mean_s, mean_s, 1.0),
    )  # fmt: skip
    return GuardContext(100.0, plan(now), Limits(1, 8, 5.0), seen)


def test_within_the_band_nothing_changes_unless_results_are_late() -> None:
    band = UtilisationBand(0.4, 0.8)  # the load is 2 of 4 processors
    for wanted in (2, 6):
        assert band.check(plan(wanted), context()).plan == plan(4)
        assert band.check(plan(wanted), context(mean_s=6.0)).plan == plan(wanted)
        assert band.check(plan(wanted), context(backlog=900.0)).plan == plan(wanted)
    assert band.check(plan(2), context(now=8)).plan == plan(2)
    assert UtilisationBand(0.5, 0.5).check(plan(2), context()).plan == plan(2)


def test_scaling_in_takes_the_highest_recent_suggestion() -> None:
    window = ScaleDownWindow(30.0)
    recent = replace(context(), suggested=((60.0, 4), (80.0, 3), (100.0, 1)))
    guarded = window.check(plan(1), recent)
    assert guarded.plan.processors == 3
    assert (
        "suggested a short while ago (3 within the scale-down window of 30 s)" in guarded.reasons[0]
    )
    assert window.check(plan(6), recent).plan == plan(6)
    assert window.check(plan(2), replace(recent, suggested=((100.0, 2),))).plan == plan(2)


def test_a_backlog_is_worked_off_within_the_time_given() -> None:
    # 1,100 rows wait, 500 may; 600 rows of 0.02 s within 10 s are 1.2 processors beside the 2.
    guarded = CatchUp(10.0).check(plan(2), context(backlog=1100.0))
    assert guarded.plan.processors == 4
    assert "work them off in time (600 rows within 10 s)" in guarded.reasons[0]
    assert CatchUp(1.0).check(plan(2), context(backlog=1100.0)).plan.processors == 8
    assert CatchUp(10.0).check(plan(2), context(backlog=400.0)).plan == plan(2)
    assert CatchUp(10.0).check(plan(6), context(backlog=1100.0)).plan == plan(6)


def test_a_quota_that_is_used_up_stops_growth_only() -> None:
    spent = replace(context(), used=((10.0, 900.0), (90.0, 80.0), (95.0, 40.0)))
    assert Quota(100.0, 50.0).check(plan(6), spent).plan == plan(4)
    assert Quota(100.0, 50.0).check(plan(2), spent).plan == plan(2)
    assert Quota(200.0, 50.0).check(plan(6), spent).plan == plan(6)


def test_excluded_times_may_pass_midnight() -> None:
    night = ExcludedTimes(((22 * 60, 6 * 60),))
    for hour, wanted in ((23, 4), (3, 4), (6, 6), (12, 6)):
        at = replace(context(), now_s=hour * 3600.0)
        assert night.check(plan(6), at).plan == plan(wanted), hour


@pytest.mark.parametrize("text", ["22-06", "25:00-26:00", "10:00-10:00", "10:00-11:00;12:00-13:00"])
def test_badly_written_times_are_refused_with_the_form(text: str) -> None:
    with pytest.raises(InvalidInput, match="write spans such as"):
        read_spans(text, "excluded-times")


def test_settings_bring_the_guards_they_name() -> None:
    plain = {type(guard).__name__ for guard in standard_guards(Settings(), 2)}
    settings = Settings(
        catch_up_s=60.0, scale_down_window_s=30.0, utilisation_low=0.4, utilisation_high=0.8,
        quota_executor_s=10.0, excluded_times="22:00-06:00",
    )  # fmt: skip
    asked = standard_guards(settings, 2)
    assert {type(guard).__name__ for guard in asked} - plain == {
        "CatchUp", "ScaleDownWindow", "UtilisationBand", "Quota", "ExcludedTimes",
    }  # fmt: skip
    assert Quota(20.0, 3600.0) in asked


@pytest.mark.parametrize("name", names())
def test_policies_that_it_helps_are_steadied_unless_told_otherwise(name: str) -> None:
    """Those of the papers; `promise` keeps by itself what it may need again."""
    usual = standard_guards(Settings(policy=name), 2)
    wanted = name in ("incremental", "drs", "ds2", "autoscale", "autoscale_plus")
    assert (ScaleDownWindow(60.0) in usual) == (CatchUp(30.0) in usual) == wanted
    off = standard_guards(Settings(policy=name, scale_down_window_s=None, catch_up_s=None), 2)
    assert not any(isinstance(one, ScaleDownWindow | CatchUp) for one in off)
    given = standard_guards(Settings(policy=name, scale_down_window_s=5.0, catch_up_s=7.0), 2)
    assert {ScaleDownWindow(5.0), CatchUp(7.0)} <= set(given)


def test_cooldowns_that_are_off_hold_nothing() -> None:
    settings = Settings(cooldown_out_s=None, cooldown_in_s=None)
    assert Cooldown(out_s=0.0, in_s=0.0) in standard_guards(settings, 2)
