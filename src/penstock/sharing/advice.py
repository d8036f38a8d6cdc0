"""One division of a cluster for a JSON document: `penstock advise sharing`."""

from collections import Counter
from typing import Any

from penstock.documents import Document
from penstock.errors import InvalidInput
from penstock.model.batch_overhead import BatchOverhead
from penstock.model.decision import USUAL_SHARE
from penstock.sharing.arbiter import MARGIN, Cluster, divide
from penstock.sharing.batches import Promised, claims_of
from penstock.sharing.claims import Division
from penstock.sharing.schema import SCHEMA

__all__ = ["SCHEMA", "advise"]


def advise(document: Document) -> dict[str, Any]:
    """Processors of each topology, executors in all, and whose promises are kept or missed."""
    topologies = [_promised(index, one) for index, one in enumerate(document["topologies"])]
    name, times = Counter(one.name for one in topologies).most_common(1)[0]
    if times > 1:
        raise InvalidInput(f"topologies name {name!r} {times} times; names must be unique.")
    processors = int(document["processors"])
    margin = document.get("margin")
    if margin is not None and "previous" not in document:
        raise InvalidInput("margin is given without previous; it is for staying with what was.")
    cluster = Cluster(
        processors,
        int(document.get("slots", 1)),
        _previous(document),
        MARGIN if margin is None else float(margin),
    )
    decision = divide(claims_of(topologies, processors), cluster)
    answer: dict[str, Any] = {
        "processors": dict(decision.plan.processors),
        "executors": decision.plan.executors,
        "kept": list(decision.plan.kept),
        "missed": [
            {"name": name, "expected_s": expected_s}
            for name, expected_s in decision.plan.missed.items()
        ],
        "reasons": list(decision.reasons),
    }
    if decision.infeasible is not None:
        answer["infeasible"] = decision.infeasible
    return answer


def _promised(index: int, one: Document) -> Promised:
    least, most = int(one.get("min", 1)), one.get("max")
    if most is not None and most < least:
        raise InvalidInput(
            f"topologies[{index}] has min {least} and max {int(most)}; min must not be above max."
        )
    cost = one["overhead"]
    overhead = BatchOverhead(
        float(cost["fixed_s"]), float(cost.get("per_processor_s", 0)), float(cost.get("work_s", 0))
    )
    return Promised(
        str(one["name"]),
        float(one["max_latency_s"]),
        float(one["load"]),
        overhead,
        float(one.get("share", USUAL_SHARE)),
        float(one.get("weight", 1)),
        least,
        None if most is None else int(most),
        float(one.get("interval_s", 0)),
    )


def _previous(document: Document) -> Division | None:
    given = document.get("previous")
    if given is None:
        return None
    processors = {str(name): int(count) for name, count in given["processors"].items()}
    return Division(processors, 0, tuple(map(str, given.get("kept", ()))), {})
