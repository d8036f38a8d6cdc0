"""What every registered scaling policy must do, whatever its algorithm."""

import copy
import math
import pickle
import re
from dataclasses import replace

import pytest

from contract.same import same
from penstock.errors import InvalidInput
from penstock.model.decision import Limits, ScalingPlan
from penstock.model.observation import (
    BatchObservation,
    ComponentObservation,
    LatencyObservation,
    NodeObservation,
    Observation,
    OperatorObservation,
)
from penstock.scaling.policies.knowledge import WHOLE, Knowledge, Sample
from penstock.scaling.policies.policy import ScalingContext, ScalingPolicy
from penstock.scaling.policies.registry import names, policy

NAMES = ("parse", "join", "alert")
SERVICE_S = {"parse": 0.002, "join": 0.01, "alert": 0.001}
PERIOD_S = 10.0


def trained() -> Knowledge:
    """Enough experience for all rates and degrees the contexts below hold."""
    samples = []
    for rate in (1, 10, 50, 100, 200, 400, 800, 3200):
        for degree in (1, 2, 4, 8, 16, 32, 64):
            whole = rate * sum(SERVICE_S.values())
            samples.append(Sample(WHOLE, rate, degree, whole < 0.8 * degree))
            samples += [
                Sample(name, rate, degree, rate * SERVICE_S[name] < 0.8 * degree) for name in NAMES
            ]
    return Knowledge().learnt(samples)


def make(name: str) -> ScalingPolicy:
    return policy(name, knowledge=trained()) if name == "rlearn" else policy(name)


def observation(
    at_s: float,
    rate: float,
    parallelism: dict[str, int],
    processors: int,
    sharing: str,
    latency_s: float = 0.5,
    backlog: float = 0.0,
) -> Observation:
    components = tuple(
        ComponentObservation(
            name=name,
            operators=(name,),
            arrival_rate_per_s=rate,
            service_time_s=SERVICE_S[name] if rate else math.nan,
            parallelism=parallelism[name],
            busy_s=rate * SERVICE_S[name] * PERIOD_S,
            backlog_rows=backlog if sharing == "space" and name == "join" else 0.0,
        )
        for name in NAMES
    )
    return Observation(
        at_s=at_s,
        period_s=PERIOD_S,
        arrival_rate_per_s=rate,
        backlog_rows=backlog,
        operators=tuple(OperatorObservation(name, rate, rate) for name in NAMES),
        components=components,
        nodes=tuple(
            NodeObservation(f"n{i}", 1, sum(c.busy_s for c in components) / processors)
            for i in range(processors)
        ),
        latency=LatencyObservation(int(rate * PERIOD_S), latency_s, latency_s, latency_s, 1.0)
        if rate
        else LatencyObservation(0, math.nan, math.nan, math.nan, math.nan),
        batches=BatchObservation(10, 1.0, 0.2, rate) if rate and sharing == "time" else None,
    )


def context(
    sharing: str,
    rates: list[float],
    each: int = 4,
    max_processors: int = 100,
    **measured: float,
) -> ScalingContext:
    parallelism = dict.fromkeys(NAMES, each)
    processors = each if sharing == "time" else each * len(NAMES)
    window = tuple(
        observation(1000 + PERIOD_S * i, rate, parallelism, processors, sharing, **measured)
        for i, rate in enumerate(rates)
    )
    return ScalingContext(
        window=window,
        current=ScalingPlan(parallelism, processors),
        limits=Limits(1, max_processors, 2.0),
        edges=(("parse", "join"), ("join", "alert")),
        sharing=sharing,  # type: ignore[arg-type]
    )


every_policy = pytest.mark.parametrize("name", names())
both_sharings = pytest.mark.parametrize("sharing", ["time", "space"])


@every_policy
@both_sharings
def test_same_answer_twice_and_input_untouched(name: str, sharing: str) -> None:
    given = context(sharing, [100.0, 200.0, 300.0] * 4, backlog=50.0)
    before = copy.deepcopy(given)
    chosen = make(name)
    assert chosen.decide(given) == chosen.decide(given)
    assert same(given, before)


@every_policy
@both_sharings
def test_survives_pickling(name: str, sharing: str) -> None:
    given = context(sharing, [100.0, 200.0, 300.0] * 4)
    chosen = make(name)
    again = pickle.loads(pickle.dumps(chosen))
    assert again.name == name
    assert again.decide(given) == chosen.decide(given)


@every_policy
@both_sharings
def test_no_measurement_changes_nothing(name: str, sharing: str) -> None:
    given = replace(context(sharing, [1.0]), window=())
    decision = make(name).decide(given)
    assert decision.plan == given.current
    assert decision.reasons


@every_policy
@both_sharings
def test_zero_load_is_answered_and_never_scales_out(name: str, sharing: str) -> None:
    given = context(sharing, [0.0] * 12)
    decision = make(name).decide(given)
    assert decision.infeasible is None
    assert 1 <= decision.plan.processors <= given.current.processors
    assert all(count >= 1 for count in decision.plan.parallelism.values())


@every_policy
@both_sharings
@pytest.mark.parametrize("rate", [0.0, 1.0, 150.0, 3000.0])
@pytest.mark.parametrize("latency_s", [0.2, 1.5, 30.0])
def test_reasons_begin_with_plain_words(
    name: str, sharing: str, rate: float, latency_s: float
) -> None:
    given = context(sharing, [rate] * 12, latency_s=latency_s, max_processors=16)
    decision = make(name).decide(given)
    first, *_ = decision.reasons
    plain = re.match(r"[a-z ,'-]*", first)
    assert plain is not None
    assert len(plain[0].split()) >= 2, first


def gone(seen: Observation, what: str) -> Observation:
    """The observation with some measurement missing."""
    nan = math.nan
    if what == "components":
        return replace(seen, components=(), operators=(), batches=None, missing=("components",))
    if what == "rates":
        blind = tuple(
            replace(c, arrival_rate_per_s=nan, service_time_s=nan, busy_s=nan)
            for c in seen.components
        )
        return replace(
            seen, arrival_rate_per_s=nan, backlog_rows=nan, components=blind,
            missing=("components", "arrivals"),
        )  # fmt: skip
    if what == "one component":
        return replace(seen, components=seen.components[:1], missing=("join", "alert"))
    return replace(seen, latency=None, batches=None, missing=("latency", "batches"))


@every_policy
@both_sharings
@pytest.mark.parametrize("what", ["components", "rates", "one component", "batches"])
@pytest.mark.parametrize("rate", [1.0, 50.0])
def test_missing_metrics_never_scale_in(name: str, sharing: str, what: str, rate: float) -> None:
    full = context(sharing, [rate] * 12, each=8)
    for window in (
        (*full.window[:-1], gone(full.window[-1], what)),
        tuple(gone(seen, what) for seen in full.window),
    ):
        given = replace(full, window=window)
        decision = make(name).decide(given)
        assert decision.plan.processors >= given.current.processors, decision
        for component in NAMES:
            assert decision.plan.parallelism[component] >= 8, decision


@every_policy
@both_sharings
def test_order_of_components_does_not_matter(name: str, sharing: str) -> None:
    given = context(sharing, [100.0, 200.0, 400.0] * 4, backlog=10.0)
    turned = tuple(
        replace(
            seen,
            components=seen.components[::-1],
            operators=seen.operators[::-1],
            nodes=seen.nodes[::-1],
        )
        for seen in given.window
    )
    current = ScalingPlan(
        dict(reversed(given.current.parallelism.items())), given.current.processors
    )
    other = replace(given, window=turned, current=current, edges=given.edges[::-1])
    first, second = make(name).decide(given), make(name).decide(other)
    assert first.plan == second.plan
    assert first.reasons == second.reasons


@pytest.mark.parametrize("name", [n for n in names() if n not in ("static", "spark-dra")])
@both_sharings
def test_a_load_too_large_is_answered_with_the_best_there_is(name: str, sharing: str) -> None:
    given = context(sharing, [3200.0] * 12, each=2, max_processors=6, latency_s=9.0, backlog=9000.0)
    if name == "incremental":  # it goes one step at a time, so let it have taken all
        given = replace(
            given,
            current=ScalingPlan(
                {"parse": 2, "join": 3, "alert": 1} if sharing == "space"
                else dict.fromkeys(NAMES, 6),
                6,
            ),
        )  # fmt: skip
    decision = make(name).decide(given)
    assert decision.infeasible, decision
    assert decision.plan.processors <= 6
    if sharing == "space":
        assert sum(decision.plan.parallelism.values()) <= 6


@pytest.mark.parametrize("name", [n for n in names() if n != "static"])
@both_sharings
def test_overload_with_a_backlog_scales_out(name: str, sharing: str) -> None:
    given = context(sharing, [400.0] * 12, each=1, latency_s=20.0, backlog=5000.0)
    decision = make(name).decide(given)
    assert decision.plan.processors > given.current.processors, decision


@pytest.mark.parametrize("name", [n for n in names() if n not in ("static", "spark-dra")])
@both_sharings
def test_low_load_without_backlog_scales_in(name: str, sharing: str) -> None:
    given = context(sharing, [10.0] * 12, each=8, latency_s=0.3)
    decision = make(name).decide(given)
    assert decision.plan.processors < given.current.processors, decision


# One that only looks up what was learnt of a rate knows nothing of rows that wait.
@pytest.mark.parametrize("name", [n for n in names() if n != "rlearn"])
@both_sharings
def test_waiting_rows_hold_back_a_scale_in(name: str, sharing: str) -> None:
    given = context(sharing, [10.0] * 11 + [0.0], each=8, latency_s=30.0)
    waiting = replace(given.window[-2], at_s=given.window[-1].at_s, arrival_rate_per_s=0.0)
    waiting = replace(
        waiting,
        backlog_rows=5_000_000.0,
        components=tuple(
            replace(c, arrival_rate_per_s=0.0, backlog_rows=5_000_000.0) for c in waiting.components
        ),
    )
    decision = make(name).decide(replace(given, window=(*given.window[:-1], waiting)))
    assert decision.plan.processors >= given.current.processors, decision


@every_policy
def test_unknown_option_is_refused_by_name(name: str) -> None:
    with pytest.raises(InvalidInput, match=f"bogus is not an option of {name}; "):
        policy(name, bogus=1)


def test_unknown_policy_names_the_known_ones() -> None:
    with pytest.raises(
        InvalidInput, match="allowed: admission-led, autoscale, autoscale_plus, drs"
    ):
        policy("guess")


@pytest.mark.parametrize(
    ("name", "options", "words"),
    [
        ("drs", {"smoothing_window": 2.5}, "a whole number"),
        ("drs", {"predictive": 1}, "true or false"),
        ("drs", {"model": 3}, "allowed: auto, mmk"),
        ("drs", {"smoothing_alpha": "x"}, "a number"),
        ("ds2", {"catch_up_s": math.nan}, "a duration"),
        ("incremental", {"min_ratio": "low"}, "a number"),
        ("rlearn", {"knowledge": {}}, "a Knowledge"),
    ],
)
def test_options_of_the_wrong_kind_are_refused(
    name: str, options: dict[str, object], words: str
) -> None:
    with pytest.raises(InvalidInput, match=words):
        policy(name, **options)


def test_whole_numbers_do_for_numbers_and_none_turns_off_what_can_be_off() -> None:
    assert policy("ds2", catch_up_s=60).name == "ds2"
    assert policy("autoscale", grace_s=None).name == "autoscale"
