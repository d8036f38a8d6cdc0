"""`advise routing`: the document's form, its refusals, and that nothing ends in a traceback."""

import contextlib
import copy
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from penstock.documents import check_document
from penstock.errors import InvalidInput
from penstock.routing.advice import SCHEMA, advise

BY_KEY = ("frequency-aware", "hash", "consistent", "osg", "two-choices")
BY_PANE = ("panes", "rate-aware-panes")
KEYS: list[dict[str, Any]] = [
    {"key": f"area-{number}", "count": 100_000 // number**2, "cost": 1 + number % 3}
    for number in range(1, 200)
]
KEYS.append({"key": 7, "count": 40})
PANES = [100, 102, 90, 102] * 8 + [600, 95]


def document_of(method: str, **fields: Any) -> dict[str, Any]:
    kind: dict[str, Any] = {"panes": PANES} if method in BY_PANE else {"keys": KEYS}
    return copy.deepcopy({"method": method, "nodes": 8, **kind, **fields})


def advice(document: Any) -> dict[str, Any]:
    check_document(document, SCHEMA)
    return advise(document)


def test_the_schema_is_a_schema() -> None:
    Draft202012Validator.check_schema(SCHEMA)


@pytest.mark.parametrize("method", BY_KEY + BY_PANE)
@pytest.mark.parametrize("nodes", [1, 8])
def test_the_answer_has_the_agreed_form_and_loses_no_load(method: str, nodes: int) -> None:
    answer = advice(document_of(method, nodes=nodes))
    assert json.loads(json.dumps(answer)) == answer
    assert list(answer) == ["load", "load_ratio", "splits"]
    work = sum(PANES) if method in BY_PANE else sum(k["count"] * k.get("cost", 1) for k in KEYS)
    assert len(answer["load"]) == nodes
    assert sum(answer["load"]) == pytest.approx(work)
    ratio = np.std(answer["load"]) / np.mean(answer["load"])
    assert answer["load_ratio"] == pytest.approx(ratio, abs=1e-12)


def test_splitting_evens_what_hashing_cannot() -> None:
    even = [{**key, "cost": 1} for key in KEYS]
    ratio = {m: advice(document_of(m, keys=even))["load_ratio"] for m in BY_KEY}
    assert ratio["osg"] < ratio["frequency-aware"] < 0.1
    assert ratio["two-choices"] < min(ratio["hash"], ratio["consistent"])
    assert min(ratio["hash"], ratio["consistent"]) > 1
    assert advice(document_of("osg"))["load_ratio"] < 0.001


def test_parts_follow_the_counts_of_the_top_keys() -> None:
    splits = advice(document_of("frequency-aware", top_k=4))["splits"]
    assert list(splits) == ["area-1", "area-2", "area-3", "area-4"]
    assert splits["area-1"] / splits["area-2"] == pytest.approx(4, rel=0.05)
    assert splits["area-1"] / splits["area-4"] == pytest.approx(16, rel=0.1)
    assert advice(document_of("frequency-aware", top_k=0))["splits"] == {}


def test_one_document_may_be_tried_with_every_method_for_keys() -> None:
    for method in ("hash", "consistent", "osg", "two-choices"):
        assert advice(document_of(method, top_k=4)) == advice(document_of(method))


def test_whole_keys_and_panes_are_not_split() -> None:
    for method in ("hash", "consistent", "panes"):
        assert advice(document_of(method))["splits"] == {}
    assert list(advice(document_of("rate-aware-panes"))["splits"]) == ["32"]


def test_nothing_to_route_is_no_load() -> None:
    for method in BY_KEY:
        assert advice(document_of(method, keys=[]))["load"] == [0.0] * 8
    for method in BY_PANE:
        answer = advice(document_of(method, panes=[]))
        assert (answer["load_ratio"], answer["splits"]) == (0.0, {})


@pytest.mark.parametrize(
    ("document", "sentence"),
    [
        ({**document_of("hash"), "method": "magic"}, "method is \"magic\"; allowed"),
        (document_of("hash", nodes=0), "nodes is 0"),
        (document_of("hash", nodes=10**6), "nodes is 1000000"),
        (document_of("hash", panes=[1]), "takes 'keys' and not 'panes'"),
        (document_of("panes", keys=[]), "takes 'panes' and not 'keys'"),
        ({"method": "osg", "nodes": 3}, "takes 'keys'"),
        (document_of("panes", top_k=3), "top_k is a number of keys, and method 'panes' has none"),
        (document_of("hash", keys=[{"key": "a", "count": 1}] * 2), r"keys\[1\].key is 'a'.*twice"),
        (document_of("hash", keys=[{"key": 1, "count": 1}, {"key": "1", "count": 1}]), "twice"),
        (document_of("hash", keys=[{"key": "a", "count": -1}]), r"keys\[0\].count is -1"),
        (document_of("hash", keys=[{"key": "a", "count": 1.5}]), r"keys\[0\].count"),
        (document_of("hash", keys=[{"key": "a", "count": 1, "cost": 0}]), r"keys\[0\].cost is 0"),
        (document_of("hash", keys=[{"key": "a", "count": 1, "cost": float("nan")}]),
         r"^keys\[0\].cost is not a number; give a finite one"),
        (document_of("hash", keys=[{"key": 2**64, "count": 1}]), "64 bits"),
        (document_of("hash", keys=[{"key": "\ud800", "count": 1}]), "not valid text"),
        (document_of("panes", panes=[1, -1]), r"panes\[1\] is -1"),
    ],
)  # fmt: skip
def test_bad_input_is_one_sentence(document: Any, sentence: str) -> None:
    with pytest.raises(InvalidInput, match=sentence) as refused:
        advice(document)
    assert str(refused.value).endswith(".")
    assert "\n" not in str(refused.value)


JUNK = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=3),
    st.sampled_from(["hash", "panes", 10**400, 10**12, 1e300, 0.0, 2.0, [], {}, [[1]], "\udfff"]),
)  # fmt: skip


def _places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    inner = (
        value.items() if isinstance(value, dict)
        else enumerate(value) if isinstance(value, list) else ()
    )  # fmt: skip
    return [path, *(place for key, item in inner for place in _places(item, (*path, key)))]


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_any_mutation_is_answered_or_refused(data: st.DataObject) -> None:
    method = data.draw(st.sampled_from(BY_KEY + BY_PANE))
    few: dict[str, Any] = {"panes": PANES[-6:]} if method in BY_PANE else {"keys": KEYS[-4:]}
    document: Any = copy.deepcopy({"method": method, "nodes": 3, **few})
    if method == "frequency-aware":
        document["top_k"] = 2
    for _ in range(data.draw(st.integers(1, 3))):
        path = data.draw(st.sampled_from(_places(document)[1:] or [("method",)]))
        place = document
        for step in path[:-1]:
            place = place[step]
        if data.draw(st.booleans()) and path[-1] != "method":
            del place[path[-1]]
        else:
            place[path[-1]] = copy.deepcopy(data.draw(JUNK))
    with contextlib.suppress(InvalidInput):
        json.dumps(advice(document), allow_nan=False)


def test_the_examples_of_the_docs_run() -> None:
    page = (Path(__file__).parents[2] / "docs" / "routing.md").read_text(encoding="utf-8")
    answer = advice(json.loads(page.split("```json\n")[1].split("```")[0]))
    assert list(answer["splits"]) == ["harbour", "airport"]
    assert sum(answer["load"]) == 13_000
    names: dict[str, Any] = {}
    exec(page.split("```python\n")[1].split("```")[0], names)
    load = np.bincount(names["routes"], minlength=8)
    assert load.max() < 1.2 * load.mean()
