"""The claims of Kotto-Kombi 2018 on scaling: S1 to S5."""

from collections.abc import Sequence
from pathlib import Path

from experiments.claim import Claim
from experiments.scaling.claims import s1, s2, s3, s4, s5

CLAIMS = (s1, s2, s3, s4, s5)


def run(folder: Path, seeds: Sequence[int], quick: bool) -> list[Claim]:
    """All claims over the seeds, figures into the folder; `quick` is small and takes seconds."""
    return [one.claim(folder, tuple(seeds), quick) for one in CLAIMS]
