"""Claims R1 to R5 on routing (seed 000 s.6.4, seed 002 ch.6 s.4.2).

R1, R2, R3 and R5 are simulated, R4 is timed on the pure code; on Spark they are measured with the
lanes and the windowed aggregate, which this package does not start.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from penstock.reproduce.claims import Claim
from penstock.reproduce.routing.balance import pane_run, relocation_run, skew_run
from penstock.reproduce.routing.balance_claims import TOPS, claim_r1, claim_r2, claim_r3
from penstock.reproduce.routing.osg import claim_r5
from penstock.reproduce.routing.overhead import claim_r4

RELOCATION_ZIPF = 1.0


@dataclass(frozen=True)
class Setting:
    """How much is simulated."""

    seconds: int = 400
    exponents: tuple[float, ...] = (0.5, 0.8, 1.0, 1.2, 1.5, 2.0)
    rows: int = 400_000
    changes: int = 20
    shrink: float = 1.0
    repeats: int = 40


QUICK = Setting(120, (0.5, 1.5), 60_000, 6, 0.25, 3)


def run(folder: Path, seeds: Sequence[int], quick: bool) -> list[Claim]:
    """R1 to R5 over the seeds, with their figures in the folder."""
    setting = QUICK if quick else Setting()
    panes = [pane_run(seed, setting.seconds) for seed in seeds]
    skews = [skew_run(s, e, TOPS, setting.rows) for e in setting.exponents for s in seeds]
    moves = [relocation_run(s, setting.changes, RELOCATION_ZIPF, setting.rows) for s in seeds]
    return [
        claim_r1(panes, folder),
        claim_r2(skews, folder),
        claim_r3(moves, folder),
        claim_r4(seeds, setting.repeats, folder),
        claim_r5(seeds, setting.shrink, folder),
    ]
