"""R1, R4 and R5 on Spark, each in a session of its own."""

from pathlib import Path

from experiments.claim import Claim
from experiments.routing.on_spark import r1, r4, r5

CLAIMS = (r1, r4, r5)


def run(folder: Path, seeds: tuple[int, ...], quick: bool) -> list[Claim]:
    """R1 and R5 on a running topology, and R4 in lanes."""
    return [one.claim(folder, seeds, quick) for one in CLAIMS]
