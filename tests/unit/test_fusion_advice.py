"""`advise fusion`: the document's form, its refusals, and that nothing ends in a traceback."""

import contextlib
import copy
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from penstock.documents import check_document
from penstock.errors import InvalidInput
from penstock.fusion.advice import SCHEMA, advise
from penstock.fusion.planner import ALGORITHMS

ROAD: dict[str, Any] = {
    "algorithm": "mwsc",
    "operators": [
        {"name": "clean", "key": None},
        {"name": "speed", "key": ["vid", "dir", "seg"], "state": [[9, 9, 9, 9], [9, 9, 30, 9]]},
        {"name": "count", "key": ["dir", "seg"], "state": [[5, 5, 5, 5], [5, 5, 5, 5]]},
        {"name": "toll", "key": ["dir", "seg"]},
        {"name": "bill", "key": ["acc"], "state": [[7, 7, 7, 7], [7, 7, 7, 7]]},
    ],
    "streams": [
        {"from": None, "to": "clean", "load": 1000},
        {"from": "clean", "to": "speed", "load": [[90, 80, 70, 60], [60, 70, 180, 90]]},
        {"from": "clean", "to": "count", "load": [[90, 80, 70, 60], [60, 70, 180, 90]]},
        {"from": "speed", "to": "toll", "load": 400},
        {"from": "count", "to": "toll", "load": 50, "columns": ["dir", "seg", "cars"]},
        {"from": "toll", "to": "bill", "load": 20},
    ],
}


def advice(document: Any) -> dict[str, Any]:
    check_document(document, SCHEMA)
    return advise(document)


def changed(**fields: Any) -> dict[str, Any]:
    return {**copy.deepcopy(ROAD), **fields}


def test_the_schema_is_a_schema() -> None:
    Draft202012Validator.check_schema(SCHEMA)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_the_answer_has_the_agreed_form(algorithm: str) -> None:
    answer = advice(changed(algorithm=algorithm))
    assert json.loads(json.dumps(answer)) == answer
    assert set(answer) - {"lower_bound"} == {
        "components", "communication_cost", "adaptation_cost", "cost", "reasons",
    }  # fmt: skip
    assert ("lower_bound" in answer) == (algorithm == "mwsc")
    assert sorted(o for c in answer["components"] for o in c["operators"]) == sorted(
        o["name"] for o in ROAD["operators"]
    )
    assert answer["cost"] == answer["communication_cost"] + answer["adaptation_cost"]
    assert answer["adaptation_cost"] == sum(c["adaptation_cost"] for c in answer["components"])


def test_the_road_is_fused_by_direction_and_segment() -> None:
    answer = advice(changed(algorithm="mwsc"))
    fused = {tuple(c["operators"]): c["key"] for c in answer["components"]}
    assert fused == {("clean", "speed", "count", "toll"): ["dir", "seg"], ("bill",): ["acc"]}
    assert answer["communication_cost"] == 20
    assert answer["lower_bound"] <= answer["cost"]


def test_the_example_of_the_docs_runs() -> None:
    page = Path(__file__).parents[2] / "docs" / "fusion.md"
    example = page.read_text(encoding="utf-8").split("```json\n")[1].split("```")[0]
    answer = advice(json.loads(example))
    assert [c["operators"] for c in answer["components"]] == [["speed", "toll"], ["bill"]]


def test_none_sends_everything() -> None:
    assert advice(changed(algorithm="none"))["communication_cost"] == 700 + 700 + 470


def test_a_beta_too_small_is_infeasible_and_says_so() -> None:
    document = changed(beta=0.5)
    document["streams"][5]["load"] = [[1, 1, 1, 1], [4000, 9000, 8000, 3000]]
    assert "raise beta" in advice(document)["infeasible"]


@pytest.mark.parametrize(
    ("path", "value", "sentence"),
    [
        (["operators", 1, "key"], [], r"operators\[1\].key"),
        (["operators", 1, "key"], [""], r"operators\[1\].key"),
        (["operators", 1, "key"], ["vid", "vid"], r"operators\[1\].key"),
        (["operators", 3, "key"], ["lane"], "names 'lane', which is not a column"),
        (["operators", 1, "name"], "count", "'count' twice"),
        (["operators", 1, "state"], [[1, 2, 3]], "same windows x key groups"),
        (["operators", 1, "state"], [[1, 2], [3]], r"operators\[1\].state\[1\] has 1 key groups"),
        (["operators", 1, "state"], [], r"operators\[1\].state"),
        (["streams", 1, "load"], [[1, 2, 3, 4]], "same windows x key groups"),
        (["streams", 1, "load"], -1, r"streams\[1\].load"),
        (["streams", 1, "load"], float("nan"), "finite"),
        (["streams", 1, "load"], float("inf"), r"streams\[1\].load"),
        (["streams", 5, "to"], "speed", "cycle speed -> toll -> speed"),
        (["streams", 5, "to"], "nowhere", "'nowhere', which is not an operator"),
        (["algorithm"], "magic", "algorithm is \"magic\"; allowed"),
        (["beta"], 0, "beta is 0"),
        (["max_component_size"], 0, "max_component_size is 0"),
        (["operators"], [], "operators is"),
    ],
)  # fmt: skip
def test_bad_input_is_one_sentence(path: list[Any], value: Any, sentence: str) -> None:
    document: Any = copy.deepcopy(ROAD)
    place = document
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = value
    with pytest.raises(InvalidInput, match=sentence) as refused:
        advice(document)
    assert str(refused.value).endswith(".")
    assert "\n" not in str(refused.value)


JUNK = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=3),
    st.sampled_from(["speed", "dir", 10**400, 1e300, 0.0, 2.0, [], {}, [[]], [[1, 2]], ["dir"]]),
)  # fmt: skip


def _places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    inner = (
        value.items() if isinstance(value, dict)
        else enumerate(value) if isinstance(value, list) else ()
    )  # fmt: skip
    return [path, *(place for key, item in inner for place in _places(item, (*path, key)))]


@settings(max_examples=250, deadline=None)
@given(st.data())
def test_any_mutation_is_answered_or_refused(data: st.DataObject) -> None:
    document: Any = changed(
        algorithm=data.draw(st.sampled_from(ALGORITHMS)), beta=40, max_component_size=3
    )
    for _ in range(data.draw(st.integers(1, 3))):
        path = data.draw(st.sampled_from(_places(document)[1:] or [("algorithm",)]))
        place = document
        for step in path[:-1]:
            place = place[step]
        if data.draw(st.booleans()) and path[-1] != "algorithm":
            del place[path[-1]]
        else:
            place[path[-1]] = copy.deepcopy(data.draw(JUNK))
    with contextlib.suppress(InvalidInput):
        json.dumps(advice(document), allow_nan=False)


def test_capacity_and_tolerance_say_when_state_moves() -> None:
    def moved(**fields: float) -> float:
        return float(advice(changed(algorithm="none", **fields))["adaptation_cost"])

    assert moved(capacity=1e9) == 0.0  # one instance each: nowhere to move to
    assert moved(capacity=100.0, tolerance=0.05) > moved(capacity=100.0, tolerance=0.5) >= 0.0
