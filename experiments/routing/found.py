"""What the seeds gave, and a claim made of it."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from matplotlib.figure import Figure

from experiments.claim import Claim, save_figure

Place = Literal["sim", "pure", "spark"]
ABOUT = 0.10  # what "about" may be off


@dataclass(frozen=True)
class Spread:
    """Mean and deviation over the seeds."""

    mean: float
    deviation: float

    def __str__(self) -> str:
        return f"{self.mean:.1%} ± {self.deviation:.1%}"

    def plain(self, digits: int = 1) -> str:
        """As a number, not in percent."""
        return f"{self.mean:.{digits}f} ± {self.deviation:.{digits}f}"


def spread(values: Iterable[float]) -> Spread:
    """Mean and deviation of what the seeds gave."""
    found = np.array(list(values), dtype=np.float64)
    return Spread(float(found.mean()), float(found.std()))


def pair(found: Spread) -> list[float]:
    """As JSON."""
    return [found.mean, found.deviation]


def found_claim(
    name: str, paper: str, ours: str, where: Place, parts: dict[str, bool], figure: Figure,
    folder: Path, numbers: dict[str, Any], why: str = "",
) -> Claim:  # fmt: skip
    """Holds if all parts do; otherwise the reason names those that do not, and `why`."""
    failed = ", ".join(part for part, holds in parts.items() if not holds)
    return Claim(
        id=name,
        paper=paper,
        ours=ours,
        holds=not failed,
        where=where,
        reason=f"not so: {failed}. {why}".strip() if failed else "",
        figures=save_figure(
            figure, folder, f"routing-{name}-spark" if where == "spark" else f"routing-{name}"
        ),
        numbers={"parts": parts, **numbers},
    )
