"""The claims of seed 004: L1 to L6."""

from collections.abc import Sequence
from pathlib import Path

from experiments.allocation.balancing import l1, l2
from experiments.allocation.collocation import l5
from experiments.allocation.flights import l6
from experiments.allocation.job1 import l3, l4
from experiments.claim import Claim


def run(folder: Path, seeds: Sequence[int], quick: bool) -> list[Claim]:
    """All claims over the seeds, figures into the folder; `quick` is small and takes seconds."""
    return [claim(folder, seeds, quick) for claim in (l1, l2, l3, l4, l5, l6)]


def run_on_spark(folder: Path, seeds: Sequence[int], quick: bool) -> list[Claim]:
    """L3 and L6 at a small scale on Spark."""
    from experiments.allocation import on_spark

    return on_spark.run_on_spark(folder, seeds, quick)
