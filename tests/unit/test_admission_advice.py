"""`advise admission`: the document's form, its refusals, and that nothing ends in a traceback."""

import contextlib
import copy
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from penstock.admission.advice import SCHEMA, advise
from penstock.admission.registry import STRATEGIES
from penstock.documents import check_document
from penstock.errors import InvalidInput

CITY: dict[str, Any] = {
    "strategy": "drf-m",
    "lane_capacity": 10,
    "horizon": 3,
    "lanes": [
        {"name": "lane-1", "queue": [1, 3, 6]},
        {"name": "lane-2", "queue": [0, 0, 0]},
        {"name": "north", "queue": []},
    ],
    "latency_bound_s": 5,
    "streams": [
        {"name": "s1", "lane": "lane-1", "rates": [4, 4, 4], "meta": {}},
        {"name": "s2", "lane": "lane-1", "rates": [5, 5, 5]},
        {
            "name": "s3",
            "lane": "lane-1",
            "rates": [3, 3, 3],
            "meta": {"greatest_rate": 6, "transition": "jump"},
        },
        {"name": "s4", "lane": "lane-2", "rates": [None, 6, 6]},
        {"name": "s5", "lane": None, "rates": [], "meta": {"expected_rate": 3}},
    ],
}


def advice(document: Any) -> dict[str, Any]:
    check_document(document, SCHEMA)
    return advise(document)


def changed(**fields: Any) -> dict[str, Any]:
    return {**copy.deepcopy(CITY), **fields}


def test_the_schema_is_a_schema() -> None:
    Draft202012Validator.check_schema(SCHEMA)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_the_answer_has_the_agreed_form(strategy: str) -> None:
    answer = advice(changed(strategy=strategy))
    assert json.loads(json.dumps(answer)) == answer
    assert list(answer) == [
        "lanes", "redirected", "new_lanes", "retired_lanes", "lower_bound", "reasons",
    ]  # fmt: skip
    assert sorted(s for streams in answer["lanes"].values() for s in streams) == [
        "s1", "s2", "s3", "s4", "s5",
    ]  # fmt: skip
    assert all(answer["lanes"].values())
    before = {stream["name"]: stream["lane"] for stream in CITY["streams"]}
    after = {stream: lane for lane, streams in answer["lanes"].items() for stream in streams}
    for move in answer["redirected"]:
        assert move == {
            "stream": move["stream"], "from": before[move["stream"]], "to": after[move["stream"]],
        }  # fmt: skip
    moved = {move["stream"] for move in answer["redirected"]}
    assert moved == {name for name, lane in before.items() if lane not in (None, after[name])}
    assert set(answer["lanes"]) | set(answer["retired_lanes"]) == {
        "lane-1", "lane-2", "north", *answer["new_lanes"],
    }  # fmt: skip
    assert 2 <= answer["lower_bound"] <= len(answer["lanes"])


def test_the_stream_that_will_jump_leaves_the_full_lane() -> None:
    answer = advice(changed(accept_below=1))
    assert answer["redirected"] == [{"stream": "s3", "from": "lane-1", "to": "north"}]
    assert answer["lanes"] == {"lane-1": ["s1", "s2"], "lane-2": ["s4", "s5"], "north": ["s3"]}
    assert answer["retired_lanes"] == []
    text = " ".join(answer["reasons"])
    assert "lane 'lane-1' is overloaded: its streams need 150.0% and its queue 5.8% of" in text
    assert "stream 's3': lane 'lane-1' -> 'north'" in text


def test_without_a_horizon_a_rise_is_still_looked_for() -> None:
    document = changed(accept_below=1)
    del document["horizon"]
    document["streams"][0]["rates"] = [1, 2, 3, 4]
    document["streams"][2]["meta"] = {}
    said = " ".join(advice(document)["reasons"])
    assert "stream 's1': lane 'lane-1' -> 'north'; it needs 6 per s and is expected to" in said


def test_costs_give_the_nodes_of_the_processing_layer() -> None:
    # 24 rows a second are expected: s1 4, s2 5, s3 6, s4 6 and s5 3.
    costs = {"query_s": 0.3, "merge_s": 0.1, "query_node_rate": 5, "headroom": 0.2}
    answer = advice(changed(costs=costs))
    assert answer["nodes"] == {"query": 9, "merge": 6}
    assert "query nodes: 9 for 24 rows per s of 0.3 s each" in answer["reasons"][-1]
    assert advice(changed(costs={"query_s": 0.3, "merge_s": 0}))["nodes"] == {
        "query": 8,
        "merge": 1,
    }
    assert "nodes" not in advice(changed())
    with pytest.raises(InvalidInput, match="headroom"):
        advice(changed(costs={**costs, "headroom": 1}))


def test_a_forecaster_is_named_where_a_strategy_forecasts() -> None:
    document = changed(accept_below=1)
    document["streams"][0]["rates"] = [1, 2, 3, 4]
    document["streams"][2]["meta"] = {}
    assert (
        advice({**document, "forecaster": "last"})["redirected"] != advice(document)["redirected"]
    )
    with pytest.raises(InvalidInput, match="strategy 'ard' forecasts nothing"):
        advice({**document, "strategy": "ard", "forecaster": "holt"})


def test_new_lanes_get_names_that_are_free() -> None:
    document = changed(lanes=[{"name": "lane-1"}, {"name": "lane-3"}])
    document["streams"] = [{"name": f"s{n}", "lane": None, "rates": [9]} for n in range(4)]
    assert advice(document)["new_lanes"] == ["lane-2", "lane-4"]


def test_a_stream_larger_than_a_lane_is_infeasible_and_says_so() -> None:
    document = changed()
    document["streams"][3]["rates"] = [20, 20, 20]
    answer = advice(document)
    assert "'s4' with 20" in answer["infeasible"]
    assert ["s4"] in answer["lanes"].values()


def test_the_example_of_the_docs_runs() -> None:
    page = Path(__file__).parents[2] / "docs" / "admission.md"
    example = page.read_text(encoding="utf-8").split("```json\n")[1].split("```")[0]
    answer = advice(json.loads(example))
    assert answer["redirected"] == [{"stream": "cab-3", "from": "a", "to": "lane-1"}]


@pytest.mark.parametrize(
    ("path", "value", "sentence"),
    [
        (["strategy"], "bfd", "strategy is \"bfd\"; allowed: drf-m, drf, ard, ari, par"),
        (["lane_capacity"], 0, "lane_capacity is 0"),
        (["lane_capacity"], "much", "lane_capacity must be of type number"),
        (["horizon"], 0, "horizon is 0"),
        (["horizon"], 1.5, "horizon must be of type integer"),
        (["latency_bound_s"], -1, "latency_bound_s is -1"),
        (["lanes", 1, "name"], "lane-1", "lanes has the name 'lane-1' more than once"),
        (["lanes", 1, "queue"], [-1], r"lanes\[1\].queue\[0\]"),
        (["streams", 1, "name"], "s1", "streams has the name 's1' more than once"),
        (["streams", 1, "lane"], "south", r"streams\[1\].lane is 'south'; known lanes: 'lane-1'"),
        (["streams", 1, "rates"], [3, "x"], r"streams\[1\].rates\[1\]"),
        (["streams", 1, "rates"], [-3], r"streams\[1\].rates\[0\] is -3"),
        (["streams", 2, "meta"], {"peak": 3}, r"streams\[2\].meta has unknown 'peak'; known"),
        (["streams", 2, "meta"], {"transition": "hop"}, r"streams\[2\].meta.transition"),
        (["streams", 2, "meta"], {"least_rate": 9, "greatest_rate": 1}, r"streams\[2\].meta.least"),
        (["drain_below"], 2, "drain_below is 2"),
    ],
)  # fmt: skip
def test_bad_input_is_one_sentence(path: list[Any], value: Any, sentence: str) -> None:
    document: Any = changed()
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
    st.sampled_from(["s1", "north", 10**400, 1e300, 0.0, 2.0, [], {}, [[]], [1, None], "jump"]),
)  # fmt: skip


def _places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    inner = (
        value.items() if isinstance(value, dict)
        else enumerate(value) if isinstance(value, list) else ()
    )  # fmt: skip
    return [path, *(place for key, item in inner for place in _places(item, (*path, key)))]


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_any_mutation_is_answered_or_refused(data: st.DataObject) -> None:
    document: Any = changed(
        strategy=data.draw(st.sampled_from(list(STRATEGIES))), drain_below=0.5, accept_below=0.9
    )
    document["streams"][3]["meta"] = {
        "period": 6, "phase": 2, "burst": 2, "idle": 4, "slope": 1, "lifetime": 9, "least_rate": 1,
    }  # fmt: skip
    for _ in range(data.draw(st.integers(1, 3))):
        path = data.draw(st.sampled_from(_places(document)[1:] or [("strategy",)]))
        place = document
        for step in path[:-1]:
            place = place[step]
        if data.draw(st.booleans()) and path[-1] != "strategy":
            del place[path[-1]]
        else:
            place[path[-1]] = copy.deepcopy(data.draw(JUNK))
    with contextlib.suppress(InvalidInput):
        json.dumps(advice(document), allow_nan=False)
