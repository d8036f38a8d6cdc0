"""`advise allocation`: the form of issue and answer, refusals, and no document that breaks it."""

import copy
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.allocation.advice import SCHEMA, advise
from penstock.allocation.policies import POLICIES
from penstock.documents import check_document
from penstock.errors import InvalidInput


def document(**changes: Any) -> dict[str, Any]:
    base: dict[str, Any] = {
        "policy": "milp",
        "nodes": [{"name": "a"}, {"name": "b", "capacity": 1}, {"name": "c", "draining": False}],
        "key_groups": [
            {
                "name": f"g{index}",
                "operator": "parse" if index < 6 else "sum",
                "load": 5 + index,
                "state_bytes": 100 * (1 + index),
                "node": "abc"[index % 3 if index < 9 else 0],
            }
            for index in range(12)
        ],
        "traffic": [{"from": f"g{i}", "to": f"g{i + 6}", "rate": 10} for i in range(6)],
        "max_migrations": 4,
        "time_limit_s": 0.01,
        "seed": 0,
    }
    return {**base, **changes}


def asked(**changes: Any) -> dict[str, Any]:
    given_document = document(**changes)
    check_document(given_document, SCHEMA)
    return advise(given_document)


@pytest.mark.parametrize("policy", POLICIES)
def test_the_answer_has_the_promised_form(policy: str) -> None:
    answer = asked(policy=policy)
    json.dumps(answer, allow_nan=False)
    assert list(answer["placement"]) == [f"g{index}" for index in range(12)]
    assert answer["bound"] <= answer["load_distance"]
    assert 0 <= answer["collocation"] <= 1
    assert answer["reasons"]
    home = {group["name"]: group["node"] for group in document()["key_groups"]}
    moves = {move["key_group"]: (move["from"], move["to"]) for move in answer["migrations"]}
    for name, node in answer["placement"].items():
        assert moves.get(name, (home[name], home[name])) == (home[name], node)
    if policy in ("milp", "albic", "flux"):
        assert len(moves) <= 4


def test_milp_is_at_least_as_good_as_flux() -> None:
    assert asked()["load_distance"] <= asked(policy="flux")["load_distance"]


def test_a_cost_budget_counts_bytes_of_state() -> None:
    changed = document(max_migration_cost=900)
    del changed["max_migrations"]
    answer = advise(changed)
    size = {group["name"]: group["state_bytes"] for group in changed["key_groups"]}
    assert 0 < sum(size[move["key_group"]] for move in answer["migrations"]) <= 900


def test_a_lost_node_s_key_groups_are_placed_at_once_and_outside_the_budget() -> None:
    groups = document()["key_groups"]
    for group in groups:
        group["node"] = None if group["node"] == "c" else group["node"]
    answer = asked(key_groups=groups, max_migrations=0)
    assert answer["migrations"] == []
    assert set(answer["placement"].values()) == {"a", "b", "c"}
    assert any("without a node" in reason for reason in answer["reasons"])


def test_a_budget_too_small_to_drain_is_answered_with_the_best_and_the_reason() -> None:
    nodes = [{"name": "a"}, {"name": "b"}, {"name": "c", "draining": True}]
    answer = asked(nodes=nodes, max_migrations=2)
    assert len(answer["migrations"]) == 2
    assert "draining" in answer["infeasible"]
    assert "budget is 2" in answer["infeasible"]
    enough = asked(nodes=nodes, max_migrations=3)
    assert "infeasible" not in enough
    assert "c" not in enough["placement"].values()


def test_capacity_too_small_is_answered_with_the_best_and_the_reason() -> None:
    groups = [{**group, "load": 40} for group in document()["key_groups"]]
    answer = asked(key_groups=groups)
    assert "capacity is too small" in answer["infeasible"]
    assert answer["placement"]
    assert "infeasible" not in asked(key_groups=groups, max_load=200)


def test_every_node_draining_leaves_everything_where_it_is() -> None:
    answer = asked(nodes=[{"name": name, "draining": True} for name in "abc"])
    assert answer["migrations"] == []
    assert "every node is draining" in answer["infeasible"]


def test_memory_is_kept_or_the_answer_says_where_it_is_not() -> None:
    groups = [{**group, "resources": {"memory": 1}} for group in document()["key_groups"]]
    nodes = [{"name": name, "resources": {"memory": 6}} for name in "abc"]
    fine = asked(key_groups=groups, nodes=nodes, max_migrations=12)
    assert "infeasible" not in fine
    nodes = [{"name": name, "resources": {"memory": 3}} for name in "abc"]
    crowded = asked(key_groups=groups, nodes=nodes, max_migrations=12)
    assert "memory is exceeded" in crowded["infeasible"]


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"max_migration_cost": 5}, "both given"),
        ({"nodes": [{"name": "a"}, {"name": "a"}]}, "nodes has 'a' more than once"),
        ({"nodes": [{"name": "a"}]}, "key_groups[1].node is 'b'"),
        ({"traffic": [{"from": "g0", "to": "x", "rate": 1}]}, "traffic[0].to is 'x'"),
        ({"policy": "magic"}, "policy is \"magic\""),
        ({"nodes": []}, "nodes"),
    ],
)  # fmt: skip
def test_refusals_name_the_field(changes: dict[str, Any], word: str) -> None:
    with pytest.raises(InvalidInput) as refusal:
        asked(**changes)
    assert word in str(refusal.value)


JUNK = st.sampled_from(
    [None, True, -1, 0, 1, 0.5, 1e12, 1e300, 10**30, "", "a", "g1", [], {}, [1], {"name": "a"}]
)


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    found = [path] if path else []
    if isinstance(value, dict):
        for key, inner in value.items():
            found += places(inner, (*path, key))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            found += places(inner, (*path, index))
    return found


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_mutated_documents_are_answered_or_refused(data: st.DataObject) -> None:
    mutated: Any = copy.deepcopy(document(policy=data.draw(st.sampled_from(POLICIES))))
    mutated["time_limit_s"] = 0.001
    for _ in range(data.draw(st.integers(1, 3))):
        path = data.draw(st.sampled_from(places(mutated)))
        target = mutated
        for step in path[:-1]:
            target = target[step]
        if data.draw(st.booleans()):
            # A copy: the same list or object at two places could come to hold itself.
            target[path[-1]] = copy.deepcopy(data.draw(JUNK))
        else:
            del target[path[-1]]
    if "time_limit_s" in mutated and mutated["time_limit_s"] not in (0.001, 0.5):
        mutated["time_limit_s"] = 0.001
    try:
        check_document(mutated, SCHEMA)
        answer = advise(mutated)
    except InvalidInput:
        return
    json.dumps(answer, allow_nan=False)


def test_albic_takes_its_options_and_nothing_else_does() -> None:
    apart = [{"from": f"g{i}", "to": f"g{6 + (i + 1) % 6}", "rate": 10} for i in range(6)]
    one, all_of_them = (
        asked(policy="albic", traffic=apart, max_migrations=12, albic={"pairs": pairs})
        for pairs in (1, 6)
    )
    joined = [sum("put together" in r for r in a["reasons"]) for a in (one, all_of_them)]
    assert joined[0] <= 1 < joined[1]
    with pytest.raises(InvalidInput, match="albic is given but policy is 'milp'"):
        asked(albic={"pairs": 2})
