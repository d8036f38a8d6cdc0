"""Claims R1 to R5 on routing (seed 000 s.6.4, seed 002 ch.6 s.4.2).

R1, R2, R3 and R5 are simulated, R4 is timed on the pure code; `run_on_spark` measures R4 in lanes
and R5 on a running topology.
"""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from experiments.claim import Claim
from experiments.routing.balance import pane_run, relocation_run, skew_run
from experiments.routing.balance_claims import TOPS, claim_r1, claim_r2, claim_r3
from experiments.routing.osg import claim_r5
from experiments.routing.overhead import claim_r4

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


SPARK_SHRINK, QUICK_SHRINK = 0.1, 0.05  # of the phases of R5
SPARK_TURNS, QUICK_TURNS = 6, 3
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


def run_on_spark(folder: Path, seeds: Sequence[int], quick: bool) -> list[Claim]:
    """R4 in lanes and R5 on a running topology, each in a session of its own."""
    from experiments.routing.osg_on_spark import claim_r5_on_spark
    from experiments.routing.overhead_on_spark import claim_r4_on_spark
    from penstock.spark.run.session import build_session

    turns, shrink = (QUICK_TURNS, QUICK_SHRINK) if quick else (SPARK_TURNS, SPARK_SHRINK)
    claims = []
    with TemporaryDirectory(prefix="penstock-routing-") as logs:
        log_file = Path(logs) / "spark.log"
        session = build_session("routing-R4", "local[1]", log_file=log_file)
        try:
            claims.append(claim_r4_on_spark(session, seeds, turns, folder, _say))
        finally:
            session.stop()
        session = build_session("routing-R5", "local[8]", log_file=log_file)
        try:
            claims.append(claim_r5_on_spark(session, seeds, shrink, folder, _say))
        finally:
            session.stop()
    return claims


def _say(what: str) -> None:
    sys.stderr.write(f"routing on Spark: {what}\n")
