"""Quotas of communities: kept against every division there is, and on a shared cluster."""

import math
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.control.shared_cluster import SharedCluster
from penstock.model.decision import Limits
from penstock.sharing.arbiter import Cluster, divide
from penstock.sharing.claims import Claims
from penstock.sharing.quotas import Quota, divide_by_quotas
from penstock.spark.host.foreseen import foreseen
from unit.test_sharing_arbiter import claims, topologies

quota = st.builds(
    lambda least, more, weight: Quota(least, None if more is None else least + more, weight),
    st.integers(0, 4), st.none() | st.integers(0, 4), st.sampled_from([0.5, 1.0, 4.0]),
)  # fmt: skip
communities = st.lists(st.sampled_from(["a", "b", ""]), min_size=4, max_size=4)


@settings(max_examples=80, deadline=None)
@given(st.lists(topologies, min_size=1, max_size=4), communities,
       st.fixed_dictionaries({"a": quota, "b": quota}), st.integers(1, 12))  # fmt: skip
def test_communities_stay_within_their_quotas(
    asked_for: list[dict[str, Any]], named: list[str], quotas: dict[str, Quota], processors: int
) -> None:
    asked, of = claims(*asked_for), named[: len(asked_for)]
    plan = divide_by_quotas(asked, Cluster(processors), of, quotas).plan
    assert set(plan.processors) == set(asked.names)
    assert set(plan.kept) | set(plan.missed) == set(asked.names)
    got = np.array([plan.processors[name] for name in asked.names])
    assert (got >= asked.least).all()
    if asked.least.sum() <= processors and sum(quotas[c].least for c in quotas) <= processors:
        rest_least = sum(asked.least[i] for i, c in enumerate(of) if c == "")
        reserved = sum(max(quotas[c].least, _minima(asked, of, c)) for c in quotas)
        if reserved + rest_least <= processors:
            assert got.sum() <= processors
    for community, limits in quotas.items():
        members = [place for place, name in enumerate(of) if name == community]
        if members and limits.most is not None:
            most = max(limits.most, int(asked.least[members].sum()))
            assert got[members].sum() <= most


def _minima(asked: Claims, of: list[str], community: str) -> int:
    return int(sum(asked.least[i] for i, c in enumerate(of) if c == community))


@settings(max_examples=40, deadline=None)
@given(st.lists(topologies, min_size=2, max_size=4), st.integers(1, 10), st.integers(1, 4))
def test_a_quota_that_does_not_bind_changes_nothing(
    asked_for: list[dict[str, Any]], processors: int, most: int
) -> None:
    asked = claims(*asked_for)
    of = ["a", *[""] * (len(asked_for) - 1)]
    free = divide(asked, Cluster(processors)).plan
    quotas = {"a": Quota(0, max(most, free.processors["t0"]), float(asked.weight[0]))}
    found = divide_by_quotas(asked, Cluster(processors), of, quotas).plan
    assert found.processors == free.processors
    assert found.kept == free.kept


def member(cluster: SharedCluster, name: str, wanted: int, community: str) -> None:
    cluster.join(name, Limits(1, 9, 1.0), 1.0, wanted, community=community)


def test_a_least_is_there_for_who_wants_it() -> None:
    cluster = SharedCluster(6)
    cluster.set_quotas({"x": Quota(least=3), "y": Quota(weight=100.0)})
    member(cluster, "a", 4, "x")
    member(cluster, "b", 5, "y")
    assert cluster.settle().plan.processors == {"a": 3, "b": 3}
    cluster.leave("a")
    member(cluster, "a", 1, "x")
    cluster.leave("b")
    member(cluster, "b", 5, "y")
    assert cluster.settle().plan.processors == {"a": 1, "b": 5}, "what it does not want is free"


def test_a_most_holds_while_processors_are_idle() -> None:
    cluster = SharedCluster(10)
    cluster.set_quotas({"x": Quota(most=3)})
    member(cluster, "a", 4, "x")
    member(cluster, "b", 2, "x")
    member(cluster, "c", 2, "")
    given_to = cluster.settle().plan.processors
    assert given_to["a"] + given_to["b"] == 3
    assert given_to["c"] == 2
    assert sum(cluster.settle().plan.processors[name] for name in "ab") == 3


def test_more_queries_do_not_make_a_community_count_more() -> None:
    one = {"name": "alone", "curve": [2.0, 0.5]}
    many = [{"name": f"many{place}", "curve": [2.0, 0.5], "weight": 3.0} for place in range(3)]
    asked = claims(one, *many)
    of, quotas = ["x", "y", "y", "y"], {"x": Quota(weight=1.1), "y": Quota()}
    assert divide_by_quotas(asked, Cluster(5), of, quotas).plan.kept == ("alone",)
    assert divide_by_quotas(asked, Cluster(5), of, {}).plan.kept != ("alone",)


def test_what_a_newcomer_does_to_promises() -> None:
    cluster = SharedCluster(4)
    cluster.join("old", Limits(1, 4, 2.0), 1.0, 1, 3, {1: 9.0, 2: 3.0, 3: 1.0})
    cluster.join("new", Limits(1, 4, 2.0), 1.0, 1, 1, {1: 1.5})
    assert cluster.missed_since("new") == {}
    cluster.leave("new")
    cluster.join("new", Limits(1, 4, 2.0), 5.0, 1, 2, {1: 4.0, 2: 1.5})
    assert cluster.missed_since("new") == {"old": 3.0}
    cluster.settle()
    assert cluster.expected_late_s("old") == 3.0
    assert cluster.expected_late_s("new") is None


def test_a_newcomer_in_a_sentence() -> None:
    cluster = SharedCluster(4)
    cluster.join("new", Limits(1, 4, 2.0), 1.0, 1, 2, {1: math.inf, 2: 2.5})
    assert foreseen(cluster, "new", 2.0, 0.99, 1.0) == (
        "99.0% within 2.00 s cannot be kept on this cluster: the best that can be had is 2.50 s."
    )
    cluster.join("old", Limits(1, 4, 1.0), 1.0, 1, 3, {1: 9.0, 2: 3.0, 3: 0.8})
    cluster.join("new", Limits(1, 4, 2.0), 5.0, 1, 2, {1: 4.0, 2: 1.5})
    assert foreseen(cluster, "new", 2.0, 0.99, 1.0) == (
        "with it, old would have 3.00 s instead of 1.00 s."
    )
    cluster.join("new", Limits(1, 4, 2.0), 0.1, 1, 2, {1: math.inf, 2: 1.5})
    assert foreseen(cluster, "new", 2.0, 0.99, 1.0) == (
        "99.0% within 2.00 s cannot be kept beside the 1 that run: the best that can be had is "
        "rows that pile up."
    )
    cluster.join("new", Limits(1, 4, 2.0))
    assert foreseen(cluster, "new", 2.0, 0.99, 1.0) is None, "nothing is known of it"
    for name in "abc":
        cluster.join(name, Limits(1, 4, 2.0))
    assert str(foreseen(cluster, "c", 2.0, 0.99, 1.0)).startswith("5 topologies share 4 processors")
