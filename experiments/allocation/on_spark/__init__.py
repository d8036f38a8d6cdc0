"""L3 and L6 on Spark at a small scale."""

from pathlib import Path

from experiments.allocation.on_spark import l3, l6
from experiments.claim import Claim


def run(folder: Path, seeds: tuple[int, ...], quick: bool) -> list[Claim]:
    """A run on Spark is one sample, whatever the seeds."""
    del seeds
    return [l3.claim(folder, quick), l6.claim(folder, quick)]
