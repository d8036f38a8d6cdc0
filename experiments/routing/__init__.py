"""The claims of Balkesen et al. 2013 and Kotto-Kombi 2018 on routing: R1 to R5."""

from collections.abc import Sequence
from pathlib import Path

from experiments.claim import Claim
from experiments.routing.claims import r1, r2, r3, r4, r5

CLAIMS = (r1, r2, r3, r4, r5)


def run(folder: Path, seeds: Sequence[int], quick: bool) -> list[Claim]:
    """All claims over the seeds, figures into the folder; `quick` is small and takes seconds."""
    return [one.claim(folder, tuple(seeds), quick) for one in CLAIMS]


def run_on_spark(folder: Path, seeds: Sequence[int], quick: bool) -> list[Claim]:
    """R4 in lanes, and R5 on a running topology."""
    # Imported here: whoever only simulates needs no Spark.
    from experiments.routing import on_spark

    return on_spark.run(folder, tuple(seeds), quick)
