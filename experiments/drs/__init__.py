"""The claims of Fu et al. 2017 (DRS): D1 to D6."""

from collections.abc import Sequence
from pathlib import Path

from experiments.claim import Claim
from experiments.drs.claims import d1, d2, d3, d4, d5, d6

CLAIMS = (d1, d2, d3, d4, d5, d6)


def run(folder: Path, seeds: Sequence[int], quick: bool) -> list[Claim]:
    """All claims over the seeds, figures into the folder; `quick` is small and takes seconds."""
    return [one.claim(folder, tuple(seeds), quick) for one in CLAIMS]


def run_on_spark(folder: Path, seeds: Sequence[int], quick: bool) -> list[Claim]:
    """D2 measured on Spark."""
    # Imported here: whoever only simulates needs no Spark.
    from experiments.drs import on_spark

    return on_spark.run(folder, tuple(seeds), quick)
