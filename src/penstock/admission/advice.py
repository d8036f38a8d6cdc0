"""One admission decision for a JSON document: `penstock advise admission`."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from penstock.admission.algorithm1 import AdmissionPlan
from penstock.admission.decide import decide_admission
from penstock.admission.names import Names
from penstock.admission.parallelism import HEADROOM, NodeCounts, QueryCosts, node_counts
from penstock.admission.problem import ACCEPT_BELOW, HORIZON, NEW, AdmissionProblem
from penstock.admission.registry import strategy_named
from penstock.admission.schema import SCHEMA
from penstock.documents import Document
from penstock.errors import InvalidInput
from penstock.forecast.metadata import metadata_from
from penstock.model.observation import Floats, Ints

__all__ = ["SCHEMA", "advise"]


def advise(document: Document) -> dict[str, Any]:
    """Which lane should read which stream, what changes, and how far from the fewest it is."""
    names = Names(_names(document["streams"], "streams"), _names(document["lanes"], "lanes"))
    problem = _problem(document, names)
    decision = decide_admission(
        problem, strategy_named(document["strategy"], document.get("forecaster")), names
    )
    answer = _answer(decision.plan, problem, names)
    reasons = list(decision.reasons)
    if "costs" in document:
        costs = _costs(document["costs"])
        nodes = node_counts(decision.plan.total_rate_per_s, costs)
        answer["nodes"] = {"query": nodes.query, "merge": nodes.merge}
        reasons.append(_nodes_reason(decision.plan.total_rate_per_s, costs, nodes))
    answer["reasons"] = reasons
    if decision.infeasible is not None:
        answer["infeasible"] = decision.infeasible
    return answer


def _answer(plan: AdmissionPlan, problem: AdmissionProblem, names: Names) -> dict[str, Any]:
    lanes = [*names.lanes, *names.of_new(plan.new_lanes)]
    members: dict[str, list[str]] = {
        lanes[row]: [] for row in np.setdiff1d(np.arange(len(lanes)), plan.retired)
    }
    for stream, row in zip(names.streams, plan.lane.tolist(), strict=True):
        members[lanes[row]].append(stream)
    return {
        "lanes": members,
        "redirected": [
            {
                "stream": names.streams[row],
                "from": lanes[problem.lane[row]],
                "to": lanes[plan.lane[row]],
            }
            for row in plan.redirected
        ],
        "new_lanes": lanes[problem.lanes :],
        "retired_lanes": [lanes[row] for row in plan.retired],
        "lower_bound": plan.lower_bound,
    }


def _problem(document: Document, names: Names) -> AdmissionProblem:
    streams = document["streams"]
    drain_below = document.get("drain_below")
    return AdmissionProblem(
        rates_per_s=_columns([stream.get("rates", []) for stream in streams]),
        lane=_lanes_of(streams, names),
        queue_rows=_columns([lane.get("queue", []) for lane in document["lanes"]]),
        lane_capacity_per_s=float(document["lane_capacity"]),
        latency_bound_s=float(document["latency_bound_s"]),
        horizon=int(document.get("horizon", HORIZON)),
        metadata=metadata_from([stream.get("meta", {}) for stream in streams]),
        accept_below=float(document.get("accept_below", ACCEPT_BELOW)),
        overload_by=document.get("overload_by", "either"),
        drain_below=None if drain_below is None else float(drain_below),
    )


def _costs(document: Document) -> QueryCosts:
    query_s = float(document["query_s"])
    return QueryCosts(
        query_s_per_tuple=query_s,
        merge_s_per_tuple=float(document["merge_s"]),
        query_node_tuples_per_s=float(document.get("query_node_rate", 1.0 / query_s)),
        headroom=float(document.get("headroom", HEADROOM)),
    )


def _nodes_reason(rate_per_s: float, costs: QueryCosts, nodes: NodeCounts) -> str:
    return (
        f"query nodes: {nodes.query} for {rate_per_s:g} rows per s of {costs.query_s_per_tuple:g} "
        f"s each; merge nodes: {nodes.merge} for {costs.query_node_tuples_per_s:g} rows per s of "
        f"each of them at {costs.merge_s_per_tuple:g} s; {costs.headroom:.0%} of a node is kept "
        "free"
    )


def _lanes_of(streams: Sequence[Document], names: Names) -> Ints:
    number: dict[str | None, int] = {name: row for row, name in enumerate(names.lanes)}
    number[None] = NEW
    rows = [number.get(stream.get("lane")) for stream in streams]
    if None in rows:
        wrong = rows.index(None)
        shown = ", ".join(map(repr, names.lanes[:5])) or "none"
        raise InvalidInput(
            f"streams[{wrong}].lane is {streams[wrong]['lane']!r}; known lanes: "
            f"{shown}{', ...' if len(names.lanes) > 5 else ''}."
        )
    return np.array(rows, dtype=np.int64)


def _columns(rows: Sequence[Sequence[float | None]]) -> Floats:
    """Rows of unlike length, ended together: what is missing is the oldest."""
    length = max(map(len, rows), default=0)
    if len(rows) * length > 200_000_000:
        raise InvalidInput(
            f"{len(rows)} lists of up to {length} numbers are too many; shorten them."
        )
    table = np.full((len(rows), length), np.nan)
    for row, values in enumerate(rows):
        if values:
            table[row, length - len(values) :] = np.array(values, dtype=np.float64)
    return table


def _names(rows: Sequence[Document], field: str) -> list[str]:
    names = [str(row["name"]) for row in rows]
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise InvalidInput(
            f"{field} has the name {twice[0]!r} more than once; names must be unique."
        )
    return names
