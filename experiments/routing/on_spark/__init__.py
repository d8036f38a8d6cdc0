"""R4 and R5 on Spark, each in a session of its own."""

from pathlib import Path

from experiments.claim import Claim
from experiments.on_spark import reporter, spark_session
from experiments.routing.on_spark import r4, r5

SHRINK, QUICK_SHRINK = 0.1, 0.05  # of the phases of R5
TURNS, QUICK_TURNS = 6, 3


def run(folder: Path, seeds: tuple[int, ...], quick: bool) -> list[Claim]:
    """R4 in lanes, and R5 on a running topology."""
    say = reporter("routing")
    turns, shrink = (QUICK_TURNS, QUICK_SHRINK) if quick else (TURNS, SHRINK)
    with spark_session("routing-R4", "local[1]") as session:
        lanes = r4.claim(session, folder, seeds, turns, say)
    with spark_session("routing-R5", "local[8]") as session:
        return [lanes, r5.claim(session, folder, seeds, shrink, say)]
