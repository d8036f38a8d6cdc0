"""A paper's claim, what was found here, and whether it holds."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from matplotlib.figure import Figure

Place = Literal["sim", "spark", "pure"]


@dataclass(frozen=True)
class Claim:
    """One row of `python -m experiments NAME --json`."""

    id: str
    paper: str  # what the paper says, in our words
    ours: str  # what was found, with mean and spread over the seeds
    holds: bool
    where: Place
    reason: str = ""  # why it does not hold, when it does not
    figures: tuple[str, ...] = ()
    numbers: dict[str, Any] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        """The claim as a JSON object."""
        return asdict(self)


def judged(
    claim_id: str,
    *,
    paper: str,
    ours: str,
    where: Place,
    parts: Mapping[str, bool],
    why: str = "",
    figures: tuple[str, ...] = (),
    numbers: Mapping[str, Any] | None = None,
) -> Claim:
    """A claim that holds if all its parts do; if not, its reason names those that do not.

    >>> judged("X1", paper="", ours="", where="pure", parts={"a": True, "b": False}, why="Rain.")\\
    ...     .reason
    '1 of 2 parts hold; not so: b. Rain.'
    """
    found = {part: bool(holds) for part, holds in parts.items()}
    failed = [part for part, holds in found.items() if not holds]
    held = f"{len(found) - len(failed)} of {len(found)} parts hold"
    return Claim(
        id=claim_id,
        paper=paper,
        ours=ours,
        holds=not failed,
        where=where,
        reason=f"{held}; not so: {'; '.join(failed)}. {why.strip()}".strip() if failed else "",
        figures=figures,
        numbers={"parts": found, **(numbers or {})},
    )


def save_figure(figure: Figure, folder: Path, name: str) -> tuple[str, ...]:
    """Write a matplotlib figure as PNG and SVG; returns both file names."""
    folder.mkdir(parents=True, exist_ok=True)
    names = tuple(f"{name}.{ending}" for ending in ("png", "svg"))
    for file in names:
        figure.savefig(folder / file, dpi=150, bbox_inches="tight")
    return names
