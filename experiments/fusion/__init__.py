"""The claims of Guo and Zhou 2017: F1 to F3."""

from collections.abc import Sequence
from pathlib import Path

from experiments.claim import Claim
from experiments.fusion.claims import f1, f2, f3

CLAIMS = (f1, f2, f3)


def run(folder: Path, seeds: Sequence[int], quick: bool) -> list[Claim]:
    """All claims over the seeds, figures into the folder; `quick` is small and takes seconds."""
    return [one.claim(folder, tuple(seeds), quick) for one in CLAIMS]
