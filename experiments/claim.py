"""A paper's claim, what was found here, and whether it holds."""

from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal


@dataclass(frozen=True)
class Claim:
    """One row of `penstock reproduce NAME --json`."""

    id: str
    paper: str  # what the paper says, in our words
    ours: str  # what was found, with mean and spread over the seeds
    holds: bool
    where: Literal["sim", "spark", "pure"]
    reason: str = ""  # why it does not hold, when it does not
    figures: tuple[str, ...] = ()
    numbers: dict[str, Any] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        """The claim as a JSON object."""
        return asdict(self)


def save_figure(figure: Any, folder: Path, name: str) -> tuple[str, ...]:
    """Write a matplotlib figure as PNG and SVG; returns both file names."""
    folder.mkdir(parents=True, exist_ok=True)
    names = tuple(f"{name}.{ending}" for ending in ("png", "svg"))
    for file in names:
        figure.savefig(folder / file, dpi=150, bbox_inches="tight")
    return names
