"""Guards: bounds, steps, cooldowns, and never scaling in blind or behind."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from contract.fakes import observation
from penstock.config import Settings
from penstock.control.guards.guard import GuardContext, apply_guards, resized
from penstock.control.guards.limits import (
    BacklogFirst,
    Bounds,
    Cooldown,
    ExcludedTimes,
    LargestStep,
    MemoryFirst,
    NeedsObservation,
)
from penstock.control.guards.stability import UtilisationBand
from penstock.control.guards.standard import standard_guards
from penstock.model.decision import Limits, ScalingPlan
from penstock.model.observation import (
    ComponentObservation,
    KeyGroups,
    NodeObservation,
    Observation,
    StateObservation,
)
from penstock.scaling.models.jackson import MMK
from penstock.scaling.models.network import network

NOW_S = 1000.0
LIMITS = Limits(min_processors=2, max_processors=8, max_latency_s=5.0)


def plan(processors: int, parallelism: Mapping[str, int] | None = None) -> ScalingPlan:
    return ScalingPlan(parallelism or {}, processors)


def context(processors: int = 4, **changes: Any) -> GuardContext:
    values = {"newest": observation(NOW_S)} | changes
    return GuardContext(NOW_S, plan(processors), LIMITS, **values)


@pytest.mark.parametrize(("wanted", "allowed"), [(1, 2), (2, 2), (5, 5), (8, 8), (9, 8)])
def test_bounds_clamp_and_say_so(wanted: int, allowed: int) -> None:
    guarded = Bounds().check(plan(wanted), context())
    assert guarded.plan.processors == allowed
    assert bool(guarded.reasons) == (wanted != allowed)
    if wanted == 9:
        assert guarded.reasons == ("no more than 8 processors are allowed (9 wanted)",)


@pytest.mark.parametrize(("wanted", "allowed"), [(4, 4), (6, 6), (7, 6), (3, 3), (2, 3)])
def test_steps_are_cut_in_each_direction_by_its_own_size(wanted: int, allowed: int) -> None:
    guarded = LargestStep(out_processors=2, in_processors=1).check(plan(wanted), context(4))
    assert guarded.plan.processors == allowed
    assert bool(guarded.reasons) == (wanted != allowed)


@pytest.mark.parametrize(
    ("wanted", "age_s", "passes"),
    [
        (5, 9.0, False),
        (5, 9.9, True),
        (5, 10.0, True),
        (3, 10.0, False),
        (3, 29.0, False),
        (3, 30.0, True),
        (4, 0.0, True),
    ],
)
def test_out_and_in_cool_down_separately(wanted: int, age_s: float, passes: bool) -> None:
    guard = Cooldown(out_s=10.0, in_s=30.0)
    guarded = guard.check(plan(wanted), context(4, last_act_at_s=NOW_S - age_s))
    assert guarded.plan.processors == (wanted if passes else 4)
    assert bool(guarded.reasons) == (not passes)


def test_nothing_cools_down_before_the_first_act() -> None:
    assert Cooldown(10.0, 30.0).check(plan(3), context(4)).plan.processors == 3


@pytest.mark.parametrize(
    "newest",
    [
        None,
        observation(NOW_S, missing=("latency",)),
        observation(NOW_S - 15.1),
        observation(NOW_S, arrival_rate_per_s=float("nan")),
        observation(NOW_S, backlog_rows=float("nan")),
    ],
    ids=["none", "missing", "stale", "rate unknown", "backlog unknown"],
)
def test_blind_loops_may_scale_out_but_not_in(newest: Any) -> None:
    guard = NeedsObservation(stale_after_s=15.0)
    held = guard.check(plan(3), context(4, newest=newest))
    assert held.plan.processors == 4
    assert held.reasons[0].startswith("no scaling in: ")
    assert guard.check(plan(5), context(4, newest=newest)).plan.processors == 5


def test_a_backlog_the_bound_allows_does_not_hold_scaling_in() -> None:
    # 100 rows/s for 5 s: 500 rows may be on their way.
    for rows, allowed in ((500.0, 3), (501.0, 4)):
        newest = observation(NOW_S, arrival_rate_per_s=100.0, backlog_rows=rows)
        assert BacklogFirst().check(plan(3), context(4, newest=newest)).plan.processors == allowed


def test_a_backlog_without_input_is_worked_off_first() -> None:
    newest = observation(NOW_S, arrival_rate_per_s=0.0, backlog_rows=1.0)
    assert BacklogFirst().check(plan(3), context(4, newest=newest)).plan.processors == 4


def test_smaller_totals_shrink_what_shares_in_time_and_in_space() -> None:
    wanted = plan(9, {"a": 5, "b": 3, "c": 1})
    assert resized(wanted, 4).parallelism == {"a": 4, "b": 3, "c": 1}
    in_space = resized(wanted, 6, "space").parallelism
    assert sum(in_space.values()) == 6
    assert min(in_space.values()) >= 1


def loaded(**loads: float) -> Observation:
    components = tuple(
        ComponentObservation(name, (name,), load, 1.0, 1, 0.0) for name, load in loads.items()
    )
    return replace(observation(NOW_S), components=components)


def test_components_in_space_keep_what_their_load_needs() -> None:
    """Loads of 5.5 and 2.5: nine and five cut to ten are seven and three, as Algorithm 1 says."""
    newest = loaded(a=5.5, b=2.5)
    cut = resized(plan(14, {"a": 9, "b": 5}), 10, "space", newest)
    assert cut.parallelism == {"a": 7, "b": 3}
    net = network(("a", "b"), np.array([5.5, 2.5]), np.ones(2), 5.5)
    assert MMK.assign(net, 10).parallelism.tolist() == [7, 3]


def test_a_step_that_is_cut_takes_no_component_further_than_all_of_them() -> None:
    """Fourteen to five, three at most in one act: eleven processors run, not the five."""
    given = context(14, newest=loaded(a=2.5, b=1.5), sharing="space")
    given = replace(given, current=plan(14, {"a": 8, "b": 6}))
    found = LargestStep(2, 3).check(plan(5, {"a": 3, "b": 2}), given).plan
    assert found.processors == sum(found.parallelism.values()) == 11
    assert found.parallelism == {"a": 7, "b": 4}


@pytest.mark.parametrize(
    "guard",
    [
        Cooldown(10.0, 30.0),
        ExcludedTimes(((0, 1439),)),
        UtilisationBand(0.1, 0.9),
        NeedsObservation(15.0),
    ],
)
def test_another_split_of_the_same_processors_is_a_change(guard: Any) -> None:
    missing = guard == NeedsObservation(15.0)
    newest = replace(loaded(a=2.0, b=2.0), missing=("components",) if missing else ())
    now = plan(8, {"a": 4, "b": 4})
    given = replace(
        context(8, newest=newest, last_act_at_s=NOW_S - 20.0, sharing="space"), current=now
    )
    assert guard.check(plan(8, {"a": 5, "b": 3}), given).plan == now
    assert guard.check(now, given).reasons == ()


def test_the_suggestion_is_never_written_into() -> None:
    parallelism = {"a": 9}
    Bounds().check(plan(9, parallelism), context())
    assert parallelism == {"a": 9}


observations = st.one_of(
    st.none(),
    st.builds(
        observation,
        at_s=st.floats(NOW_S - 100, NOW_S),
        arrival_rate_per_s=st.floats(min_value=0, max_value=1e6) | st.just(float("nan")),
        backlog_rows=st.floats(min_value=0, max_value=1e6) | st.just(float("nan")),
        missing=st.sampled_from([(), ("latency",)]),
    ),
)


@given(
    wanted=st.integers(0, 100),
    current=st.integers(LIMITS.min_processors, LIMITS.max_processors),
    newest=observations,
    age_s=st.none() | st.floats(0, 100),
)
def test_all_guards_together_keep_what_each_promises(
    wanted: int, current: int, newest: Any, age_s: float | None
) -> None:
    settings = Settings(step_out=3, step_in=1, cooldown_out_s=10, cooldown_in_s=30)
    last_s = None if age_s is None else NOW_S - age_s
    where = context(current, newest=newest, last_act_at_s=last_s)
    guarded = apply_guards(standard_guards(settings, slots_per_executor=1), plan(wanted), where)
    got = guarded.plan.processors
    assert LIMITS.min_processors <= got <= LIMITS.max_processors
    assert -1 <= got - current <= 3
    assert got in (wanted, current) or got == min(max(wanted, 2, current - 1), 8, current + 3)
    assert (got == wanted) or guarded.reasons
    if got < current:
        assert newest is not None
        assert not newest.missing
        assert newest.backlog_rows <= newest.arrival_rate_per_s * LIMITS.max_latency_s
    if got != current and last_s is not None:
        assert NOW_S - last_s >= (10 if got > current else 30)
    assert apply_guards(standard_guards(settings, 1), plan(wanted), where) == guarded


def keeping(state_mb: float, memory_mb: float | None, gc_s: float | None = None) -> Observation:
    """Four executors of one slot with so much state in all, and memory and collection each."""
    memory = None if memory_mb is None else memory_mb * 1e6
    nodes = tuple(NodeObservation(n, 1, 4.0, False, memory, gc_s) for n in "abcd")
    groups = KeyGroups(np.ones(2), np.array([state_mb * 1e6, np.nan]), np.array(["a", "b"]))
    return replace(observation(NOW_S), nodes=nodes, state=(StateObservation("s", groups),))


@pytest.mark.parametrize(
    ("seen", "allowed"),
    [(keeping(180, 100), 2), (keeping(220, 100), 4), (keeping(220, None), 2),
     (keeping(0, None, 0.1), 2), (keeping(0, None, 0.5), 4)],
)  # fmt: skip
def test_nothing_scales_in_where_memory_is_short(seen: Observation, allowed: int) -> None:
    guarded = MemoryFirst().check(plan(2), context(4, newest=seen))
    assert guarded.plan.processors == allowed
    assert MemoryFirst().check(plan(6), context(4, newest=seen)).plan.processors == 6


def test_what_is_short_of_memory_is_said() -> None:
    def reasons(seen: Observation) -> tuple[str, ...]:
        return apply_guards(
            standard_guards(Settings(), 1), plan(2), context(4, newest=seen)
        ).reasons

    state, collects = reasons(keeping(220, 100)), reasons(keeping(0, None, 0.5))
    assert "state of 220 MB would not fit the 200 MB of the 2 executors that would stay" in state[0]
    assert "garbage collection takes 12% of the time of tasks" in collects[0]
