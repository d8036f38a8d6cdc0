"""A1, A2 and A5 on Spark at a small scale, each strategy a source of the same query."""

from pathlib import Path

from experiments.admission.on_spark import a1, a2, a5
from experiments.admission.on_spark.race import run_race
from experiments.admission.on_spark.strategies import (
    SAY,
    entrants,
    rising_race,
    six_workloads,
    warm_up,
)
from experiments.claim import Claim
from experiments.on_spark import spark_session


def run(folder: Path, seeds: tuple[int, ...], quick: bool) -> list[Claim]:
    """A1 and A2 over the six workloads, and A5.

    Time passes as it does, so the first seed only: eight minutes.
    """
    with spark_session("race", "local[2]", quick_start=True) as session:
        SAY("warming up")
        run_race(session, warm_up(), entrants(100.0))
        races = six_workloads(session, seeds[:1], quick)
        rising = [rising_race(session, seed, quick) for seed in seeds[:1]]
    return [a1.claim(races, folder), a2.claim(races), a5.claim(rising, folder)]
