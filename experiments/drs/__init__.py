"""The claims of seed 003: D1 to D6."""

from collections.abc import Sequence
from pathlib import Path

from experiments.claim import Claim
from experiments.drs.claims_of_allocations import d1, d2, d6
from experiments.drs.claims_of_rescaling import d3, d4, d5


def run(folder: Path, seeds: Sequence[int], quick: bool) -> list[Claim]:
    """All claims over the seeds, figures into the folder; `quick` is small and takes seconds."""
    return [claim(folder, tuple(seeds), quick) for claim in (d1, d2, d3, d4, d5, d6)]


def run_on_spark(folder: Path, seeds: Sequence[int], quick: bool) -> list[Claim]:
    """D2 really measured; one run of each allocation takes a minute, so the first seed only."""
    from experiments.drs.claim_on_spark import d2_on_spark

    return [d2_on_spark(folder, tuple(seeds)[:1], quick)]
