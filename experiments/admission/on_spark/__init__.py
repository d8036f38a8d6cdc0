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
from experiments.admission.on_spark.whole import START_S, WAYS, Course, Outcome, run_way
from experiments.claim import Claim
from experiments.on_spark import spark_session

WHOLE_S, QUICK_WHOLE_S = 180.0, 60.0


def run(folder: Path, seeds: tuple[int, ...], quick: bool) -> list[Claim]:
    """A1 and A2 over the six workloads, A5 by lanes alone and with executors behind them.

    Time passes as it does: with three seeds about 45 minutes, with --quick and one about eight.
    """
    whole = [_whole(seed, quick) for seed in seeds]
    with spark_session("race", "local[2]", quick_start=True) as session:
        SAY("warming up")
        run_race(session, warm_up(), entrants(100.0))
        races = six_workloads(session, seeds, quick)
        rising = [rising_race(session, seed, quick) for seed in seeds]
    return [a1.claim(races, folder), a2.claim(races), a5.claim(rising, whole, folder)]


def _whole(seed: int, quick: bool) -> dict[str, Outcome]:
    course = Course(QUICK_WHOLE_S if quick else WHOLE_S)
    found = {}
    for name, way in WAYS.items():
        SAY(f"traffic query, {name}, seed {seed}: about {course.duration_s + START_S:.0f} s")
        found[name] = run_way(way, course, seed)
    return found
