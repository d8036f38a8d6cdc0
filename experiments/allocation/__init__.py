"""The claims of Madsen et al. 2017: L1 to L6."""

from collections.abc import Sequence
from pathlib import Path

from experiments.allocation.claims import l1, l2, l3, l4, l5, l6
from experiments.claim import Claim

CLAIMS = (l1, l2, l3, l4, l5, l6)


def run(folder: Path, seeds: Sequence[int], quick: bool) -> list[Claim]:
    """All claims over the seeds, figures into the folder; `quick` is small and takes seconds."""
    return [one.claim(folder, tuple(seeds), quick) for one in CLAIMS]


def run_on_spark(folder: Path, seeds: Sequence[int], quick: bool) -> list[Claim]:
    """L3 and L6 at a small scale."""
    # Imported here: whoever only simulates needs no Spark.
    from experiments.allocation import on_spark

    return on_spark.run(folder, tuple(seeds), quick)
