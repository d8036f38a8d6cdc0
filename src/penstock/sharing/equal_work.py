"""Which steps of several topologies are the same work: same code, on the same upstreams.

A step's signature is made of its code and of the signatures of its upstreams, in their order, so
equal signatures are equal sub-graphs down to the sources. Code that cannot be compared is equal to
itself alone.
"""

import hashlib
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from penstock.model.batch_overhead import BatchOverhead
from penstock.sharing.batches import Promised, claims_of


@dataclass(frozen=True)
class Step:
    """A source or an operator; `code` is equal where the work is, None if nobody can tell."""

    code: str | None
    upstreams: tuple[str, ...] = ()


Graph = Mapping[str, Step]
Place = tuple[str, str]  # topology, step


def signatures(topology: str, graph: Graph) -> dict[str, str]:
    """Of each step; upstreams must be steps of the graph, which must have no cycle."""
    found: dict[str, str] = {}

    def sign(name: str) -> str:
        if name not in found:
            step = graph[name]
            code = f"only {topology}.{name}" if step.code is None else f"code {step.code}"
            parts = [code, *(sign(upstream) for upstream in step.upstreams)]
            found[name] = hashlib.sha256("\n".join(parts).encode()).hexdigest()
        return found[name]

    for name in graph:
        sign(name)
    return found


def equal_steps(graphs: Mapping[str, Graph]) -> tuple[tuple[Place, ...], ...]:
    """Steps that are the same work, in groups of two or more, in the order of the graphs."""
    groups: dict[str, list[Place]] = defaultdict(list)
    for topology, graph in graphs.items():
        for name, signature in signatures(topology, graph).items():
            groups[signature].append((topology, name))
    return tuple(tuple(group) for group in groups.values() if len(group) > 1)


@dataclass(frozen=True)
class Saving:
    """Processors that keep the promises of topologies apart, and as one; None: none would."""

    apart: int | None
    together: int | None

    @property
    def cheaper(self) -> bool:
        """Whether one query keeps all promises with fewer processors."""
        return self.together is not None and (self.apart is None or self.together < self.apart)


def saving(topologies: Sequence[Promised], shared_load: float, most: int) -> Saving:
    """What one query for all would take, if `shared_load` processors of work are done once.

    As one, batches have the work of all but what is shared, the overhead of the largest, and the
    strictest bound and share. `most` processors are looked at.
    """
    apart = [_needed(one, most) for one in topologies]
    overheads = [one.overhead for one in topologies]
    load = sum(one.load for one in topologies) - shared_load
    together = replace(
        topologies[0],
        max_latency_s=min(one.max_latency_s for one in topologies),
        share=max(one.share for one in topologies),
        load=max(load, max(one.load for one in topologies)),
        overhead=BatchOverhead(
            max(one.fixed_s for one in overheads),
            max(one.per_processor_s for one in overheads),
            sum(one.work_s for one in overheads),
        ),
    )
    known = [count for count in apart if count is not None]
    total = sum(known) if len(known) == len(apart) else None
    return Saving(total, _needed(together, most))


def _needed(one: Promised, most: int) -> int | None:
    claims = claims_of([one], most)
    if not claims.keepable[0]:
        return None
    return int(np.asarray(claims.least + claims.need)[0])
