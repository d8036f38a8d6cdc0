"""`advise sharing`: the form of its answer, its model, refusals."""

import json
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from penstock.cli import app
from penstock.documents import check_document
from penstock.errors import InvalidInput
from penstock.model.batch_overhead import BatchOverhead
from penstock.sharing.advice import SCHEMA, advise
from penstock.sharing.batches import Promised, claims_of


def topology(name: str, **changes: Any) -> dict[str, Any]:
    return {
        "name": name, "weight": 1, "min": 1, "max": 8, "max_latency_s": 2, "share": 0.99,
        "load": 1.5, "overhead": {"fixed_s": 0.3},
    } | changes  # fmt: skip


def document(*topologies: dict[str, Any], **changes: Any) -> dict[str, Any]:
    return {"processors": 8, "topologies": list(topologies)} | changes


def asked(given_document: dict[str, Any]) -> dict[str, Any]:
    check_document(given_document, SCHEMA)
    return advise(given_document)


def test_the_answer_has_the_promised_form() -> None:
    answer = asked(document(topology("orders"), topology("audit", max_latency_s=60)))
    assert answer == {
        "processors": {"orders": 3, "audit": 2},  # 0.3 / (1 - 1.5 / 3) * 1.99 = 1.19 s
        "executors": 5,
        "kept": ["orders", "audit"],
        "missed": [],
        "reasons": ["all 2 promises are kept with 5 of 8 processors"],
    }


def test_who_is_missed_is_told_with_what_to_expect() -> None:
    two = topology("orders", weight=2), topology("audit")
    answer = asked(document(*two, processors=5, slots=2))
    assert answer["processors"] == {"orders": 3, "audit": 2}
    assert answer["executors"] == 3
    assert answer["kept"] == ["orders"]
    (missed,) = answer["missed"]
    assert missed["name"] == "audit"
    assert missed["expected_s"] == pytest.approx(1.99 * 0.3 / (1 - 1.5 / 2))
    assert answer["infeasible"] == answer["reasons"][0]
    assert answer["reasons"][1].startswith("audit: 2.388 s with 2 processors instead of 99% within")


def test_rows_that_pile_up_have_no_latency_and_exit_3() -> None:
    given_document = document(topology("orders", load=50), processors=4)
    result = CliRunner().invoke(app, ["advise", "sharing", "-"], input=json.dumps(given_document))
    assert result.exit_code == 3
    answer = json.loads(result.stdout)
    assert answer["missed"] == [{"name": "orders", "expected_s": None}]
    assert "no number that it may have keeps up with its load" in answer["reasons"][1]


def test_an_answer_may_be_given_back() -> None:
    first = asked(document(topology("orders"), topology("audit")))
    previous = {"processors": first["processors"], "kept": first["kept"]}
    again = asked(document(topology("orders"), topology("audit"), previous=previous))
    assert again == first


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"processors": 0}, "processors is 0; it must be at least 1."),
        ({"processors": "8"}, "processors must be of type integer, not string."),
        ({"topologies": []}, "topologies is []"),
        ({"topologies": [topology("a"), topology("a")]}, "topologies name 'a' 2 times"),
        ({"topologies": [topology("a", min=4, max=2)]}, "topologies[0] has min 4 and max 2"),
        ({"topologies": [topology("a", share=0)]}, "topologies[0].share is 0; it must be greater"),
        ({"topologies": [topology("a", load=-1)]}, "topologies[0].load is -1"),
        ({"topologies": [topology("a", max_latency_s=0)]}, "topologies[0].max_latency_s is 0"),
        ({"topologies": [topology("a", weight=0)]}, "topologies[0].weight is 0"),
        ({"topologies": [topology("a", overhead={})]}, "topologies[0].overhead lacks 'fixed_s'"),
        ({"topologies": [topology("a", overhead=1)]}, "topologies[0].overhead must be of type obj"),
        ({"topologies": [topology("a", cost=1)]}, "topologies[0] has unknown 'cost'"),
        ({"topologies": [{"name": "a"}]}, "topologies[0] lacks 'max_latency_s'"),
        ({"margin": 0.2}, "margin is given without previous"),
    ],
)
def test_refusals_name_the_field(changes: dict[str, Any], sentence: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        asked(document(topology("orders")) | changes)
    assert str(refused.value).startswith(sentence)
    assert len(str(refused.value).splitlines()) == 1


promised = st.builds(
    lambda fixed, growth, work, load, bound, share, interval, least, most: Promised(
        "t", bound, load, BatchOverhead(fixed, growth, work), share, 1.0, least, most, interval
    ),
    st.floats(0, 2), st.sampled_from([0.0, 0.001, 0.05, 0.5]), st.sampled_from([0.0, 0.2, 3.0]),
    st.sampled_from([0.0, 0.5, 1.0, 3.0, 7.7, 40.0]), st.floats(0.1, 20), st.floats(0.01, 1),
    st.sampled_from([0.0, 1.0, 5.0]), st.integers(1, 3), st.sampled_from([None, 3, 10, 60]),
)  # fmt: skip


@settings(max_examples=150, deadline=None)
@given(promised)
def test_claims_reach_the_fewest_that_keep_the_bound_or_the_best(one: Promised) -> None:
    """Against the formula for every number of processors."""

    def latency_s(k: int) -> float:
        own_s = one.overhead.at(k)
        paced_s = own_s + one.load / k * one.interval_s
        if one.interval_s > 0 and paced_s <= one.interval_s:
            return one.share * one.interval_s + paced_s
        return (1 + one.share) * own_s / (1 - one.load / k) if one.load < k else math.inf

    numbers = range(one.least, min(one.most or 64, 64) + 1)
    every = [latency_s(k) for k in numbers]
    asked_for = claims_of([one], 64)
    keeping = [k for k, latency in zip(numbers, every, strict=True) if latency <= one.max_latency_s]
    assert bool(asked_for.keepable[0]) == bool(keeping)
    if keeping:
        assert one.least + asked_for.need[0] == keeping[0]
    else:
        assert float(asked_for.expected_s.min()) == pytest.approx(min(every), rel=1e-9)
    curve = asked_for.expected_s[0]
    assert np.allclose(curve, every[: len(curve)], rtol=1e-9)
