"""The claims of seed 002 on scaling: S1 to S5."""

from collections.abc import Sequence
from pathlib import Path

from experiments.claim import Claim
from experiments.scaling.claims_of_autoscale import s1, s2, s3
from experiments.scaling.claims_of_autoscale_plus import s4, s5


def run(folder: Path, seeds: Sequence[int], quick: bool) -> list[Claim]:
    """All claims over the seeds, figures into the folder; `quick` is small and takes seconds."""
    return [claim(folder, tuple(seeds), quick) for claim in (s1, s2, s3, s4, s5)]
