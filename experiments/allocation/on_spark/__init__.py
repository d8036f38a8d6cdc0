"""L3 and L6 on Spark at a small scale, and L6 in the loop as it is shipped."""

from pathlib import Path

from experiments.allocation.on_spark import l3, l6, l6_loop
from experiments.claim import Claim

CLAIMS = (l3, l6, l6_loop)


def run(folder: Path, seeds: tuple[int, ...], quick: bool) -> list[Claim]:
    """A run on Spark is one sample, whatever the seeds."""
    return [one.claim(folder, seeds, quick) for one in CLAIMS]
