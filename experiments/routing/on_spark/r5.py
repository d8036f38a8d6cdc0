"""R5 on Spark: OSG against round robin, on an operator whose values wait 10 to 90 ms.

Chosen as in the simulation: 1,000 values with costs evenly in between, the costliest the rarest; 4
tasks at 70% load, then at 130%, then 8 tasks at the same input, shortened to fit minutes. Rows
arrive evenly, batches follow each other, and costs are learnt by the running operator itself.
"""

from collections.abc import Callable, Sequence
from pathlib import Path

from pyspark.sql import SparkSession

from experiments.claim import Claim
from experiments.on_spark import reporter, spark_session
from experiments.routing.claims.r5 import METHODS, VALUES, claim_of
from experiments.routing.on_spark import dealing
from experiments.routing.on_spark.dealing import Phase
from experiments.routing.trials.osg import (
    COSTS_S,
    DISTINCT_VALUES,
    PHASES,
    ZIPF,
    TaskRun,
    busy_deviation,
)

LEAST_PHASE_S = 2.0
WHY = (
    "A micro-batch evens out what round robin deals: a task gets tens of rows of each batch, so "
    "their sums differ by less than single rows do, and waiting for the next batch, which no "
    "routing shortens, is a part of every latency."
)
SHRINK, QUICK_SHRINK = 0.1, 0.05  # of the phases


def claim(folder: Path, seeds: Sequence[int], quick: bool) -> Claim:
    """In a session of its own."""
    with spark_session("routing-R5", "local[8]") as session:
        return judge(session, folder, seeds, QUICK_SHRINK if quick else SHRINK, reporter("routing"))


def judge(
    session: SparkSession,
    folder: Path,
    seeds: Sequence[int],
    shrink: float,
    say: Callable[[str], None],
) -> Claim:
    """Both methods, with uniform and skewed values; `shrink` shortens every phase."""
    phases = _phases(shrink)
    for method in METHODS:  # the first batches of a session are slow, whoever deals
        _run(session, method, skewed=True, seed=0, phases=_phases(0.0))
    runs: dict[tuple[bool, str], list[TaskRun]] = {}
    for seed in seeds:
        for skewed, values in VALUES.items():
            for method in METHODS if seed % 2 else METHODS[::-1]:
                say(f"R5, {values}, {method}, seed {seed}")
                run = _run(session, method, skewed, seed, phases)
                runs.setdefault((skewed, method), []).append(run)
    shown = f"On Spark, phases of {', '.join(f'{phase.duration_s:g} s' for phase in phases)}. "
    return claim_of(runs, "spark", folder, "routing-R5-spark", shown, WHY)


def _phases(shrink: float) -> list[Phase]:
    return [
        Phase(max(LEAST_PHASE_S, round(seconds * shrink)), tasks, load)
        for seconds, tasks, load in PHASES
    ]


def _run(
    session: SparkSession, method: str, skewed: bool, seed: int, phases: Sequence[Phase]
) -> TaskRun:
    skew = ZIPF if skewed else 0.0
    seen = dealing.dealt_run(session, method, skew, seed, phases, DISTINCT_VALUES, COSTS_S)
    after = seen.arrival_s >= sum(phase.duration_s for phase in phases[:-1])
    return TaskRun(
        busy_deviation(
            seen.task,
            seen.start_s,
            seen.start_s + seen.busy_s,
            [(phase.duration_s, phase.tasks) for phase in phases],
        ),
        float(seen.latency_s[after].mean()),
        float(seen.latency_s.sum()) / sum(phase.duration_s * phase.tasks for phase in phases),
    )
