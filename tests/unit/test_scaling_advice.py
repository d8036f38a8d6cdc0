"""`penstock advise scaling`: its answers, its refusals, and documents broken at random."""

import copy
import json
import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from penstock.documents import check_document
from penstock.errors import InvalidInput
from penstock.scaling.advice import SCHEMA, advise
from penstock.scaling.documents.periods import context_of
from penstock.scaling.policies.promise import Promise
from penstock.sim.run import simulate
from penstock.sim.scenario_file import scenario_of

INCREMENTAL = {
    "policy": "incremental",
    "operators": [
        {"name": "a", "arrival_rate": 95, "service_rate": 50, "parallelism": 2},
        {"name": "b", "arrival_rate": 10, "service_rate": 50, "parallelism": 3},
        {"name": "c", "arrival_rate": 30, "service_rate": 50, "parallelism": 1},
    ],
    "thresholds": {"min": 0.5, "max": 0.9},
}
DRS = {
    "policy": "drs",
    "model": "mmk",
    "operators": [
        {"name": "extract", "arrival_rate": 13, "service_rate": 1.6, "parallelism": 8},
        {"name": "match", "arrival_rate": 130, "service_rate": 14, "arrival_scv": 2},
        {"name": "aggregate", "arrival_rate": 13, "service_rate": 200},
    ],
    "external_rate": 13,
    "max_processors": 22,
}
MICROBATCH = {
    "policy": "drs",
    "model": "microbatch",
    "operators": [{"name": "a", "arrival_rate": 360, "service_rate": 100}],
    "external_rate": 360,
    "max_latency_s": 5,
    "batch_overhead_s": {"fixed": 0.3, "per_processor": 0.05},
}
AUTOSCALE = {
    "policy": "autoscale",
    "period_s": 10,
    "operators": [
        {"name": "fast", "received": [400] * 6, "latency_s": 0.001, "parallelism": 1},
        {
            "name": "slow", "upstreams": ["fast"], "received": [400] * 6, "processed": [100] * 6,
            "emitted": [100] * 6, "pending": 1000, "latency_s": [0.1] * 6, "parallelism": 1,
        },
        {
            "name": "end", "upstreams": ["slow"], "received": [100] * 6, "latency_s": 0.05,
            "parallelism": 1, "max_parallelism": 8,
        },
    ],
}  # fmt: skip
AUTOSCALE_PLUS = {
    **AUTOSCALE,
    "policy": "autoscale_plus",
    "alpha": 0.9,
    "beta": 0.7,
    "operators": [
        {**operator, "cpu": {"used": 0.5, "others_used": [0.4]}}
        for operator in AUTOSCALE["operators"]  # type: ignore[attr-defined]
    ],
}
PROMISE = {
    "policy": "promise",
    "period_s": 5,
    "max_latency_s": 5,
    "share": 0.99,
    "processors": [4] * 8 + [6] * 4,
    "slots": 2,
    "max_processors": 16,
    "external_rate": [110, 114, 119, 125, 132, 140, 149, 159, 170, 182, 195, 209],
    "operators": [
        {"name": "extract", "service_rate": 200},
        {"name": "match", "service_rate": 100, "visits": 1.5},
    ],
    "backlog": 0,
    "batch_overhead_s": 0.3,
    "start_up_s": 15,
}
DS2 = {**PROMISE, "policy": "ds2", "options": {"target_utilisation": 0.5, "utilisation_band": 0.1}}
DOCUMENTS: list[dict[str, Any]] = [
    INCREMENTAL, DRS, MICROBATCH, AUTOSCALE, AUTOSCALE_PLUS, PROMISE, DS2,
]  # fmt: skip


def answer(document: dict[str, Any]) -> dict[str, Any]:
    check_document(document, SCHEMA)
    return advise(document)


def test_the_schema_is_one() -> None:
    Draft202012Validator.check_schema(SCHEMA)


def test_incremental() -> None:
    found = answer(INCREMENTAL)
    assert set(found) == {"parallelism", "reasons"}
    assert found["parallelism"] == {"a": 3, "b": 2, "c": 1}
    assert "load ratio 0.95 is above 0.9" in found["reasons"][0]


def test_drs_splits_all_processors() -> None:
    found = answer(DRS)
    assert set(found) == {"parallelism", "processors", "expected_latency_s", "reasons"}
    assert found["processors"] == sum(found["parallelism"].values()) == 22
    assert "8 -> " in found["reasons"][0]


def test_drs_finds_the_fewest_for_a_bound() -> None:
    document = {**DRS, "max_latency_s": 2.0}
    del document["max_processors"]
    found = answer(document)
    assert found["expected_latency_s"] <= 2.0
    fewer = answer({**DRS, "max_processors": found["processors"] - 1})
    assert fewer.get("expected_latency_s", 99) > 2.0


def test_drs_says_what_is_least_when_too_few_are_allowed() -> None:
    found = answer({**DRS, "max_processors": 5})
    assert found["least_processors"] == 9 + 10 + 1
    assert "at least 20 processors" in found["infeasible"]


def test_drs_says_the_best_latency_when_the_bound_cannot_be_met() -> None:
    found = answer({**DRS, "max_latency_s": 0.5, "max_processors": 100})
    assert found["infeasible"]
    assert found["best_latency_s"] == pytest.approx(1 / 1.6 + 10 / 14 + 1 / 200, rel=1e-6)


def test_drs_says_how_many_a_bound_would_take() -> None:
    found = answer({**DRS, "max_latency_s": 1.6, "max_processors": 21})
    assert found["infeasible"]
    enough = answer({**DRS, "max_latency_s": 1.6, "max_processors": found["least_processors"]})
    assert enough["expected_latency_s"] <= 1.6


def test_gigk_needs_more_than_mmk_for_bursty_rows() -> None:
    bursty = [{**operator, "arrival_scv": 4, "service_scv": 4} for operator in DRS["operators"]]  # type: ignore[attr-defined]
    document = {**DRS, "operators": bursty, "max_latency_s": 2.0, "max_processors": 100}
    assert (
        answer({**document, "model": "gigk"})["processors"]
        > answer({**document, "model": "mmk"})["processors"]
    )


def test_microbatch() -> None:
    found = answer(MICROBATCH)
    # O = 0.5 s on 4: 1.5 x 0.5 / 0.1 = 7.5 s; O = 0.55 s on 5: 1.5 x 0.55 / 0.28 = 2.9 s.
    assert found["processors"] == 5
    assert found["expected_latency_s"] == pytest.approx(1.5 * 0.55 / 0.28)
    plain = answer({**MICROBATCH, "batch_overhead_s": 0.5})
    assert plain["parallelism"] == {"a": 5}
    hopeless = answer({**MICROBATCH, "max_latency_s": 0.6})
    assert hopeless["best_latency_s"] > 0.6


def test_routes_with_a_loop_give_the_rates() -> None:
    document = {
        "policy": "drs",
        "operators": [
            {"name": "generate", "entry_rate": 10, "service_rate": 20},
            {"name": "detect", "service_rate": 10},
        ],
        "routes": [
            {"from": "generate", "to": "detect", "ratio": 2},
            {"from": "detect", "to": "detect", "ratio": 0.5},
        ],
        "max_processors": 8,
    }
    found = answer(document)
    assert found["processors"] == 8
    assert found["parallelism"]["detect"] >= 5  # 40 rows/s arrive, not 20


def test_unequal_processors() -> None:
    document = {key: value for key, value in DRS.items() if key != "max_processors"}
    found = answer({**document, "speeds": [2.0] * 8 + [1.0] * 12})
    assert sum(map(len, found["assignment"].values())) == found["processors"] <= 20
    assert "infeasible" in answer({**document, "speeds": [1.0] * 5})


def test_of_unequal_processors_the_fewest_that_keep_a_bound() -> None:
    operators = [{"name": "a", "arrival_rate": 3.0, "service_rate": 1.0}]
    document = {"policy": "drs", "operators": operators, "external_rate": 3.0}
    speeds = [1.0] * 16 + [2.0] * 4
    found = answer({**document, "speeds": speeds, "max_latency_s": 0.7})
    assert found["assignment"] == {"a": [16, 17, 18]}, "three of speed 2, by their place"
    within = answer({**document, "speeds": speeds, "max_processors": 2})
    assert within["assignment"] == {"a": [16, 17]}
    late = answer({**document, "speeds": speeds, "max_processors": 2, "max_latency_s": 0.7})
    assert late["best_latency_s"] > 0.7


@pytest.mark.parametrize(
    ("routes", "rate", "instead"),
    [([], "arrival_rate", "with routes, give entry_rate"), (None, "entry_rate", "without routes")],
)
def test_a_rate_that_would_be_ignored_is_refused(
    routes: list[object] | None, rate: str, instead: str
) -> None:
    document = {key: value for key, value in DRS.items() if key != "operators"}
    operators = [{"name": "a", "service_rate": 1.0, rate: 1.0}]
    more = {} if routes is None else {"routes": routes}
    with pytest.raises(InvalidInput, match=instead):
        answer({**document, "operators": operators, **more})


def test_an_operator_is_as_slow_as_its_slowest_task() -> None:
    """Kotto-Kombi 2018, ch. 5 s. 2.1; ch. 6 s. 1.2 takes the mean, which OSG then makes true."""
    operator = {
        "name": "a", "received": [200.0] * 6, "task_latency_s": [0.05, 0.15], "parallelism": 2,
    }  # fmt: skip
    document = {"period_s": 10.0, "operators": [operator]}
    # 20 rows/s of 150 ms are 3 tasks, of 100 ms two.
    assert answer({"policy": "autoscale", **document})["parallelism"] == {"a": 3}
    plus = answer({"policy": "autoscale_plus", "alpha": 1.0, **document})
    assert plus["parallelism"] == {"a": 2}
    both = {"policy": "autoscale", **document, "operators": [{**operator, "latency_s": 0.1}]}
    with pytest.raises(InvalidInput, match="one of latency_s and task_latency_s"):
        answer(both)


def test_autoscale_and_plus() -> None:
    found = answer(AUTOSCALE)
    assert found["parallelism"] == {"fast": 1, "slow": 6, "end": 3}
    assert answer({**AUTOSCALE, "variant": "local"})["parallelism"]["end"] == 1
    plus = answer(AUTOSCALE_PLUS)
    assert plus["parallelism"]["slow"] == 7  # 5.67 / 0.9
    few = answer({**AUTOSCALE, "max_processors": 5})
    assert few["infeasible"]
    assert few["processors"] <= 5


def test_promise_meets_a_load_that_rises() -> None:
    found = answer(PROMISE)
    assert set(found) == {"parallelism", "processors", "reasons", "expected_latency_s"}
    assert found["processors"] in (8, 10)
    assert found["parallelism"] == {"extract": found["processors"], "match": found["processors"]}
    assert found["reasons"][0].startswith("the load ahead needs them: expects 99% of results")
    assert found["expected_latency_s"] < 5


@pytest.mark.parametrize("share", [0.9, 0.999])
def test_periods_of_a_document_know_what_its_share_kept(share: float) -> None:
    context = context_of({**PROMISE, "share": share, "processors": 8}, window_periods=12)
    newest = context.window[-1]
    assert newest.latency is not None
    batch_s = 0.3 / (1 - 209 * (1 / 200 + 1.5 / 100) / 8)
    assert newest.latency.share_s == pytest.approx(batch_s * (1 + share))  # back to back
    assert context.limits.share == share


def test_promise_gives_back_what_has_not_been_needed_for_long() -> None:
    calm = {**PROMISE, "external_rate": [60] * 200, "processors": 8}
    assert answer(calm)["processors"] == 2
    paced = answer({**calm, "batch_interval_s": 3})
    assert paced["expected_latency_s"] > 3


def test_promise_goes_by_what_was_late_and_by_its_options() -> None:
    dice = random.Random(1)
    rates = [max(0.0, dice.gauss(220, 40)) for _ in range(300)]
    waves = {**PROMISE, "external_rate": rates, "processors": 6, "max_latency_s": 3}
    late = answer({**waves, "in_time_share": 0.5})
    assert late["processors"] > answer({**waves, "in_time_share": 1})["processors"]
    tight = answer({**PROMISE, "options": {"keep": 0.4}})
    assert tight["processors"] > answer(PROMISE)["processors"]


def test_promise_says_when_it_cannot_be_kept() -> None:
    long = answer({**PROMISE, "batch_overhead_s": 3})
    assert "a batch without any row takes so long" in long["infeasible"]
    assert "cannot be kept: with all 6 processors" in answer(
        {**PROMISE, "max_processors": 6, "external_rate": [400] * 12}
    ).get("infeasible", "")


def test_promise_decides_as_in_a_run() -> None:
    """What a simulated run came to at a steady load, the document of its periods does too."""
    scenario = scenario_of(
        {
            "scenario": {"name": "steady", "duration": 600, "max_latency": 5},
            "cluster": {"max_executors": 8, "slots": 2, "startup": 15},
            "batch": {"fixed": 0.3},
            "source": [{"name": "in", "rate": {"profile": "constant", "rate_per_s": 200}}],
            "operator": [{"name": "work", "from": ["in"], "service": {"mean": 0.02}}],
        }
    )
    run = simulate(scenario, Promise(step=2))
    observed = run.observations[-60:]
    found = answer(
        {
            **PROMISE,
            "external_rate": [one.arrival_rate_per_s for one in observed],
            "processors": [one.processors for one in observed],
            "operators": [{"name": "work", "service_rate": 50}],
        }
    )
    assert found["processors"] == observed[-1].processors > 4


def test_ds2() -> None:
    # 1.045 for extract and 3.135 for match, at half of it used, and for 5 s without processing.
    assert answer(DS2)["processors"] == 10
    assert "expected_latency_s" not in answer(DS2)
    behind = answer({**DS2, "backlog": 5000})
    assert behind["processors"] > 10


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"backlog": [1, 2]}, "backlog has 2 measurements; external_rate has 12"),
        ({"processors": 5}, "slots is 2; numbers of processors must be multiples of it"),
        ({"min_processors": 20}, "min_processors is 20; max_processors is 16"),
        ({"options": {"theta_max": 1}}, "theta_max is not an option of promise; known: keep"),
        ({"options": {"keep": 3}}, "keep is 3; allowed: 0.1 to 1"),
        ({"max_latency_s": 0}, "max_latency_s"),
        ({"start_up_s": 1001}, "start_up_s is 1001; advice looks 200 periods ahead"),
        ({"share": 1}, "share"),
    ],
)
def test_what_a_run_cannot_have_been_is_refused(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        answer({**PROMISE, **changes})


@pytest.mark.parametrize(
    ("document", "words"),
    [
        ({**INCREMENTAL, "thresholds": {"min": 0.9, "max": 0.5}}, "min 0.9 and max 0.5"),
        ({**DRS, "operators": [DRS["operators"][0]] * 2}, "'extract' 2 times"),  # type: ignore[index]
        ({**INCREMENTAL, "policy": "guess"}, "allowed: incremental, drs"),
        ({**DRS, "model": "mm1"}, "mmk, gigk, microbatch"),
        ({**DRS, "external_rate": 0}, "external_rate"),
        ({k: v for k, v in DRS.items() if k != "max_processors"}, "max_latency_s"),
        ({k: v for k, v in DRS.items() if k != "external_rate"}, "external_rate"),
        ({k: v for k, v in MICROBATCH.items() if k != "batch_overhead_s"}, "batch_overhead_s"),
        ({**DRS, "max_processors": 0}, "at least 1"),
        ({**DRS, "k_max": 3}, "unknown 'k_max'"),
        ({**AUTOSCALE, "theta_min": 0.9}, "theta_min"),
        (
            {**DRS, "operators": [{"name": "a", "arrival_rate": 1e12, "service_rate": 1e-9}]},
            "advice goes up to",
        ),
    ],
)
def test_refusals_name_the_field(document: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        answer(document)


ODD = [
    None, True, "", "x", [], {}, -1, 0, 1, 3, 0.5, 1e-300, 1e9, 1e12, 1e15, 1e308, 10**400,
    [0], [1, 2], ["a"], [[1]], {"min": 1}, {"fixed": 0},
]  # fmt: skip


def broken(document: Any, dice: random.Random) -> Any:
    """The document with one to three places changed, removed or added to."""
    document = copy.deepcopy(document)
    for _ in range(dice.randint(1, 3)):
        place = document
        while isinstance(place, dict | list) and place:
            keys = list(place) if isinstance(place, dict) else list(range(len(place)))
            key = dice.choice(keys)
            inner = place[key]
            if isinstance(inner, dict | list) and inner and dice.random() < 0.8:
                place = inner
                continue
            kind = dice.random()
            if kind < 0.6:
                place[key] = copy.deepcopy(dice.choice(ODD))
            elif kind < 0.8:
                del place[key]
            elif isinstance(place, dict):
                place["odd"] = copy.deepcopy(dice.choice(ODD))
            else:
                place.append(copy.deepcopy(dice.choice(ODD)))
            break
    return document


@given(st.integers(0, 10**9), st.sampled_from(range(len(DOCUMENTS))))
@settings(max_examples=400, deadline=None)
def test_a_broken_document_is_answered_or_refused(seed: int, which: int) -> None:
    document = broken(DOCUMENTS[which], random.Random(seed))
    try:
        found = answer(document)
    except InvalidInput:
        return
    assert json.loads(json.dumps(found, allow_nan=False)) == found
