"""What the topologies of a host have in common: done once by some, by each of others."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from penstock.model.batch_overhead import BatchOverhead
from penstock.model.observation import Observation
from penstock.model.topology import Topology
from penstock.sharing.batches import Promised
from penstock.sharing.equal_work import equal_steps, saving
from penstock.spark.host.loading import Whole, graphs_of

SEPARATOR = "/"  # of a submission and the topologies that run as one in it


def common_work(running: Mapping[str, Whole]) -> list[dict[str, Any]]:
    """Steps that several topologies have, by who has them; whether they run once."""
    parts: dict[str, Topology] = {}
    for name, whole in running.items():
        for part, topology in whole.parts.items():
            parts[name if len(whole.parts) == 1 else f"{name}{SEPARATOR}{part}"] = topology
    found: dict[tuple[str, ...], list[str]] = defaultdict(list)
    for group in equal_steps(graphs_of(parts)):
        whose = tuple(dict.fromkeys(topology for topology, _ in group))
        if len(whose) > 1:
            found[whose].append(group[0][1])
    return [
        {
            "topologies": list(whose),
            "steps": steps,
            "once": len({name.split(SEPARATOR)[0] for name in whose}) == 1,
        }
        for whose, steps in found.items()
    ]


def as_measured(topology: Topology, seen: Observation | None) -> Promised | None:
    """A topology with its promise, its load and its overhead, if these were measured."""
    if seen is None or seen.batches is None or not seen.components:
        return None
    overhead = BatchOverhead(max(0.0, seen.batches.mean_overhead_s))
    load = _load(seen, None)
    return Promised(topology.name, topology.max_latency_s, load, overhead, topology.share)


def told_saving(
    measured: Sequence[Promised | None], seen: Observation | None, steps: Sequence[str], most: int
) -> str | None:
    """What one query for all would take instead, by what was measured; None if that is unknown."""
    known = [one for one in measured if one is not None]
    if len(known) < len(measured) or seen is None:
        return None
    found = saving(known, (len(known) - 1) * _load(seen, set(steps)), most)
    if found.together is None:
        return "as one query they would not keep their promises"
    apart = "more than there are" if found.apart is None else str(found.apart)
    verdict = "submit them together" if found.cheaper else "they are as well apart"
    return f"as one query they need {found.together} processors, now {apart}: {verdict}"


def _load(seen: Observation, steps: set[str] | None) -> float:
    """Processors that its components keep busy, or those of them that do these steps alone."""
    busy = [
        one.arrival_rate_per_s * one.service_time_s
        for one in seen.components
        if steps is None or {one.name, *one.operators} & steps >= set(one.operators)
    ]
    return float(sum(load for load in busy if load > 0))  # NaN where nothing came
