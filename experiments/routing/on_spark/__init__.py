"""R1, R4 and R5 on Spark, each in a session of its own."""

from pathlib import Path

from experiments.claim import Claim
from experiments.on_spark import reporter, spark_session
from experiments.routing.on_spark import r1, r4, r5

SHRINK, QUICK_SHRINK = 0.1, 0.05  # of the phases of R5
TURNS, QUICK_TURNS = 6, 3
SECONDS, QUICK_SECONDS = 400, 120  # of R1


def run(folder: Path, seeds: tuple[int, ...], quick: bool) -> list[Claim]:
    """R1 and R5 on a running topology, and R4 in lanes."""
    say = reporter("routing")
    turns, shrink = (QUICK_TURNS, QUICK_SHRINK) if quick else (TURNS, SHRINK)
    with spark_session("routing-R1", "local[2]") as session:
        panes = r1.claim(session, folder, seeds, QUICK_SECONDS if quick else SECONDS, say)
    with spark_session("routing-R4", "local[1]") as session:
        lanes = r4.claim(session, folder, seeds, turns, say)
    with spark_session("routing-R5", "local[8]") as session:
        return [panes, lanes, r5.claim(session, folder, seeds, shrink, say)]
