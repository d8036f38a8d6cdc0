"""Several topologies as one, in which what they have in common is there once."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from penstock.errors import InvalidTopology
from penstock.model.same_code import same_code_digest
from penstock.model.topology import Operator, SinkBinding, Source, Topology

Places = dict[tuple[str, str], str]  # topology and step -> step of the one they are


def work_of(topology: Topology) -> dict[str, tuple[str | None, tuple[str, ...]]]:
    """Of each source and operator its code, equal where the work is, and its upstreams."""
    found: dict[str, tuple[str | None, tuple[str, ...]]] = {}
    for source in topology.sources:
        found[source.name] = (same_code_digest(("source", source.reader, source.route)), ())
    for operator in topology.ordered():
        found[operator.name] = (_code_of(operator), operator.upstreams)
    return found


def _code_of(operator: Operator) -> str | None:
    """SQL names its upstreams; a function gets them in their order."""
    fields = {k: v for k, v in vars(operator).items() if k not in ("name", "upstreams")}
    fields["reads"], fields["writes"] = (
        None if names is None else sorted(names) for names in (operator.reads, operator.writes)
    )
    named = operator.upstreams if _has_sql(operator) else ()
    return same_code_digest(("operator", fields, named))


def _has_sql(operator: Operator) -> bool:
    forms = [operator.sql, operator.cheaper, *(step for _, step in operator.forms)]
    return any(isinstance(one, str) for one in forms)


def merged(
    name: str, topologies: Mapping[str, Topology], same: Mapping[tuple[str, str], tuple[str, str]]
) -> tuple[Topology, Places]:
    """One topology for all, and where each step is in it.

    `same` names, for each step that another topology has too, the first place where it is. Sinks
    keep the bounds of their own topologies. Names are kept where they are free.
    """
    bound_s = min(one.max_latency_s for one in topologies.values())
    made = Topology(name, bound_s, max(one.share for one in topologies.values()))
    places: Places = {}
    operators: dict[str, Operator] = {}
    sinks: list[SinkBinding] = []
    taken: set[str] = set()

    def named(part: str, step: str) -> str:
        free = step
        while free in taken:
            free = f"{part}_{free}"
        taken.add(free)
        return free

    for part, topology in topologies.items():
        if topology.feedbacks:
            raise InvalidTopology(f"topology {part!r} has a loop; it can only run by itself.")
        steps: list[Source | Operator] = [*topology.sources, *topology.ordered()]
        for step in steps:
            first = same.get((part, step.name), (part, step.name))
            if first in places:
                places[part, step.name] = places[first]
                continue
            own = places[part, step.name] = named(part, step.name)
            if isinstance(step, Source):
                made.source(own, step.reader, route=step.route)
                continue
            upstreams = tuple(places[part, upstream] for upstream in step.upstreams)
            operators[own] = _moved(step, own, upstreams)
        bounds_s = topology.sink_bounds_s
        for sink in topology.sinks:
            own = places[part, sink.name] = named(part, sink.name)
            upstream = places[part, sink.upstream]
            own_s = bounds_s[sink.name]
            sinks.append(replace(sink, name=own, upstream=upstream, max_latency_s=own_s))
    return made.rewired(operators.values(), sinks), places


def _moved(operator: Operator, name: str, upstreams: tuple[str, ...]) -> Operator:
    moved = replace(operator, name=name, upstreams=upstreams)
    if upstreams == operator.upstreams or not _has_sql(operator):
        return moved
    step = moved.sql if moved.sql is not None else moved.function
    assert step is not None
    cheaper = operator.cheaper
    return replace(
        moved,
        sql=None,
        function=_by_names(step, operator.upstreams),
        cheaper=None if cheaper is None else _by_names(cheaper, operator.upstreams),
        forms=tuple((form, _by_names(one, operator.upstreams)) for form, one in operator.forms),
    )


def _by_names(step: Callable[..., Any] | str, names: tuple[str, ...]) -> Callable[..., Any]:
    """SQL text as a function of frames that have other names by now."""
    if not isinstance(step, str):
        return step
    text = step

    def ask(*frames: Any) -> Any:
        for name, frame in zip(names, frames, strict=True):
            frame.createOrReplaceTempView(name)
        return frames[0].sparkSession.sql(text)

    return ask
