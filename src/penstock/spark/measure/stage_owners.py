"""Which tasks of a batch do the work of which component.

A part of a batch's plan belongs to the component of the operators whose edges lie in it; one
without any feeds its neighbour downstream, or, if it reads a source, is that source's.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from penstock.spark.handles import StagePart
from penstock.spark.routes.method import COLUMN

_ROUTE = re.compile(rf"{COLUMN}(\w+)#")


@dataclass(frozen=True)
class OwnedPart:
    """A part of a plan, and whose work its tasks do."""

    component: str
    part: StagePart
    routed: str | None = None  # the source whose routes number its tasks
    feeds: str | None = None  # the component that reads the shuffle it writes


def owned_parts(
    parts: Sequence[StagePart], component_of: Mapping[str, str], lone_source: str | None
) -> list[OwnedPart]:
    """Give each part of a plan to a component.

    `component_of` maps operators and sources to components; `lone_source` is the component of the
    only source, whose edge carries no metric. Where both are empty, parts with state are named
    after its operators.
    """
    owners = [_owner(parts, part, component_of, lone_source) for part in parts]
    return [
        OwnedPart(
            owner, part, _routed(part), None if part.downstream is None else owners[part.downstream]
        )
        for owner, part in zip(owners, parts, strict=True)
    ]


def _owner(
    parts: Sequence[StagePart], part: StagePart, component_of: Mapping[str, str],
    lone_source: str | None,
) -> str:  # fmt: skip
    """The first edge met from the top names the part; see the module for parts without."""
    if not component_of:
        operators = "-".join(map(str, part.stateful))
        return f"state-{operators}" if operators else "stateless"
    while True:
        for node in part.nodes:
            if node in component_of:
                return component_of[node]
        if part.reads_source and lone_source is not None:
            return lone_source
        if part.downstream is None:
            return lone_source or next(iter(component_of.values()))
        part = parts[part.downstream]


def _routed(part: StagePart) -> str | None:
    """The source whose route column divides the rows of a part."""
    found = (_ROUTE.search(text) for text in part.divided_by)
    return next((match.group(1) for match in found if match), None)
