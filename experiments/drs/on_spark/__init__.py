"""D2 on Spark."""

from pathlib import Path

from experiments.claim import Claim
from experiments.drs.on_spark import d2


def run(folder: Path, seeds: tuple[int, ...], quick: bool) -> list[Claim]:
    """One run of each allocation takes two minutes, so the first two seeds only."""
    return [d2.claim(folder, seeds[:2], quick)]
