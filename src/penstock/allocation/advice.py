"""One allocation decision for a JSON document: `penstock advise allocation`."""

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from penstock.allocation.albic import AlbicOptions
from penstock.allocation.assignment import Objective
from penstock.allocation.budget import SearchBudget
from penstock.allocation.framework import Cluster
from penstock.allocation.policies import FULL_LOAD, AllocationContext, decide
from penstock.allocation.problem import NOWHERE, AllocationProblem, Ints, Resource
from penstock.allocation.schema import SCHEMA
from penstock.allocation.traffic import Traffic
from penstock.documents import Document
from penstock.errors import InvalidInput

__all__ = ["SCHEMA", "advise"]

DEFAULT_TIME_LIMIT_S = 2.0


def advise(document: Document) -> dict[str, Any]:
    """Where each key group should live, what moves, and how good that is."""
    nodes = _names(document["nodes"], "nodes")
    groups = _names(document["key_groups"], "key_groups")
    problem = _problem(document, nodes)
    traffic = _traffic(document, groups)
    max_load = float(document.get("max_load", FULL_LOAD))
    decision = decide(
        document["policy"],
        AllocationContext(
            Cluster(tuple(nodes), problem),
            groups,
            traffic,
            max_load,
            _albic(document),
            _objective(document),
        ),
        SearchBudget.of_time(float(document.get("time_limit_s", DEFAULT_TIME_LIMIT_S))),
        np.random.default_rng(int(document.get("seed", 0))),
    )
    placement = decision.plan.placement
    collocation = traffic.collocation(placement)
    answer: dict[str, Any] = {
        "placement": {
            name: nodes[node] for name, node in zip(groups, placement.tolist(), strict=True)
        },
        "migrations": [
            {
                "key_group": groups[group],
                "from": nodes[problem.home[group]],
                "to": nodes[placement[group]],
            }
            for group in np.flatnonzero((placement != problem.home) & (problem.home != NOWHERE))
        ],
        "load_distance": round(decision.plan.distance.load_distance, 9),
        "collocation": None if math.isnan(collocation) else round(collocation, 9),
        "bound": round(decision.plan.bound, 9),
        "reasons": list(decision.reasons),
    }
    if decision.infeasible is not None:
        answer["infeasible"] = decision.infeasible
    return answer


def _albic(document: Document) -> AlbicOptions:
    given = document.get("albic", {})
    if given and document["policy"] != "albic":
        raise InvalidInput(
            f"albic is given but policy is {document['policy']!r}; only the policy albic has these "
            "options."
        )
    named = {name: value for name, value in given.items() if name != "pairs"}
    if "pairs" in given:
        named["pairs_per_round"] = int(given["pairs"])
    return AlbicOptions(**named)


def _objective(document: Document) -> Objective:
    if "objective" in document and document["policy"] != "resource-aware":
        raise InvalidInput(
            f"objective is given but policy is {document['policy']!r}; only the policy "
            "resource-aware has one."
        )
    chosen: Objective = document.get("objective", "resource")
    return chosen


def _problem(document: Document, nodes: Sequence[str]) -> AllocationProblem:
    if "max_migrations" in document and "max_migration_cost" in document:
        raise InvalidInput(
            "max_migrations and max_migration_cost are both given; give one of them."
        )
    number = {name: index for index, name in enumerate(nodes)}
    rows = document["key_groups"]
    for index, row in enumerate(rows):
        if row.get("node") is not None and row["node"] not in number:
            raise InvalidInput(
                f"key_groups[{index}].node is {row['node']!r}; known nodes: {_some(nodes)}."
            )
    by_count = "max_migration_cost" not in document
    costs = [1.0 if by_count else float(row.get("state_bytes", 0.0)) for row in rows]
    most = document.get("max_migrations", document.get("max_migration_cost", math.inf))
    return AllocationProblem(
        load=np.array([float(row["load"]) for row in rows]),
        home=np.array([number.get(row.get("node"), NOWHERE) for row in rows], dtype=np.int64),
        capacity=np.array([float(node.get("capacity", 1.0)) for node in document["nodes"]]),
        draining=np.array([node.get("draining", False) for node in document["nodes"]], dtype=bool),
        migration_cost=np.array(costs),
        max_migration_cost=float(most),
        resources=_resources(document),
    )


def _resources(document: Document) -> tuple[Resource, ...]:
    """One resource for each name that some node limits."""
    rows = document["key_groups"]
    names = {name for node in document["nodes"] for name in node.get("resources", {})}
    return tuple(
        Resource(
            name,
            np.array([float(row.get("resources", {}).get(name, 0.0)) for row in rows]),
            np.array([
                float(node.get("resources", {}).get(name, math.inf)) for node in document["nodes"]
            ]),
        )
        for name in sorted(names)
    )  # fmt: skip


def _traffic(document: Document, groups: Sequence[str]) -> Traffic:
    number = {name: index for index, name in enumerate(groups)}
    rows = document.get("traffic", [])
    for index, row in enumerate(rows):
        for end in ("from", "to"):
            if row[end] not in number:
                raise InvalidInput(
                    f"traffic[{index}].{end} is {row[end]!r}; known key groups: {_some(groups)}."
                )
    operators = [row.get("operator", "") for row in document["key_groups"]]
    operator_number = {name: index for index, name in enumerate(dict.fromkeys(operators))}

    def ends(end: str) -> Ints:
        return np.array([number[row[end]] for row in rows], dtype=np.int64)

    return Traffic(
        source=ends("from"),
        target=ends("to"),
        rate=np.array([float(row["rate"]) for row in rows]),
        operator=np.array([operator_number[name] for name in operators], dtype=np.int64),
    )


def _names(rows: Sequence[Document], field: str) -> list[str]:
    names = [str(row["name"]) for row in rows]
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise InvalidInput(f"{field} has {_some(twice)} more than once; names must be unique.")
    return names


def _some(names: Sequence[str]) -> str:
    shown = ", ".join(repr(name) for name in names[:5])
    return shown + (", ..." if len(names) > 5 else "")
