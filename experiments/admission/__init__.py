"""The claims of Balkesen et al. 2013 on admission: A1 to A6."""

from collections.abc import Sequence
from pathlib import Path

from experiments.admission.claims import a1, a2, a3, a4, a5, a6
from experiments.claim import Claim

CLAIMS = (a1, a2, a3, a4, a5, a6)


def run(folder: Path, seeds: Sequence[int], quick: bool) -> list[Claim]:
    """All claims over the seeds, figures into the folder; `quick` is small and takes seconds."""
    return [one.claim(folder, tuple(seeds), quick) for one in CLAIMS]


def run_on_spark(folder: Path, seeds: Sequence[int], quick: bool) -> list[Claim]:
    """A1, A2 and A5 on the real source, at a small scale; eight minutes."""
    # Imported here: whoever only simulates needs no Spark.
    from experiments.admission import on_spark

    return on_spark.run(folder, tuple(seeds), quick)
