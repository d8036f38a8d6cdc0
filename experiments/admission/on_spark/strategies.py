"""The strategies as sources of one query, and what races of them show.

Time runs five times faster than in the paper and four lanes carry the mean load instead of ten,
so that the lanes of three strategies are worked off within one batch on a small machine. The bound
stays as it is: rows wait for the batch of their period, so it cannot be below that.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any

import numpy as np

from experiments.admission.on_spark.race import (
    BATCH_S,
    SETTLING_PERIODS,
    SHORT_PERIOD_S,
    TIME_SCALE,
    Race,
    run_race,
)
from experiments.admission.trials.lanes import BOUND_S, HORIZON_PERIODS
from experiments.admission.workloads.streams import (
    WORKLOADS,
    StreamWorkload,
    rising,
    stream_workload,
)
from experiments.on_spark import reporter, spark_session
from penstock.model.sources import Admission

STREAMS = 80
LOAD_LEVEL = 4  # lanes the mean load fills
PERIODS, QUICK_PERIODS = 25, 10
RISING_PERIODS, QUICK_RISING_PERIODS = 40, 20
FEWEST, MOST = 2, 8  # lanes the rising load fills at its lowest and at its highest
SATURATED = 0.9
BOUND = BOUND_S
DRAIN_BELOW = 0.8
# A batch that is late finds more rows than one period brings: what a lane takes at most in a batch
# is above what it is planned for, or the lateness of a batch would never be made up for.
CATCH_UP = 1.2
ORDER = ("drf-m", "ard", "par")
SAY = reporter("admission")
SCALE = (
    f"time runs {TIME_SCALE:g} times faster (periods of {SHORT_PERIOD_S:g} s, bound {BOUND:g} s on "
    f"a lane's queue), one batch a period, {SETTLING_PERIODS} periods not counted"
)


@cache
def six_workloads(seeds: tuple[int, ...], quick: bool) -> dict[str, list[Race]]:
    """All strategies on each workload; run once for all claims about them."""
    races: dict[str, list[Race]] = {name: [] for name in WORKLOADS}
    periods = QUICK_PERIODS if quick else PERIODS
    with _warm_session() as session:
        for seed in seeds:
            for row, name in enumerate(WORKLOADS):
                SAY(f"{name} ({row + 1} of {len(WORKLOADS)}), seed {seed}")
                rng = np.random.default_rng([seed, row])
                workload = stream_workload(name, rng, STREAMS, periods)
                sources = entrants(workload.mean_total_per_s / LOAD_LEVEL)
                races[name].append(run_race(session, workload, sources))
    return races


def rising_races(seeds: Sequence[int], quick: bool) -> list[Race]:
    """DRF-M, ARD and lanes that stay, under a load that rises and falls."""
    with _warm_session() as session:
        return [_rising_race(session, seed, quick) for seed in seeds]


@contextmanager
def _warm_session() -> Iterator[Any]:
    with spark_session("race", "local[2]", quick_start=True) as session:
        SAY("warming up")
        run_race(session, _few_even_streams(), entrants(100.0))
        yield session


def entrants(capacity_per_s: float) -> dict[str, Admission]:
    """A source for each strategy."""
    return {source_name(name): _admission(name, capacity_per_s) for name in ORDER}


def _admission(strategy: str, capacity_per_s: float, **more: Any) -> Admission:
    options: dict[str, Any] = {
        "strategy": strategy, "lane_capacity": capacity_per_s,
        "lane_rows": round(CATCH_UP * capacity_per_s * BATCH_S), "lanes_max": 64,
        "period": SHORT_PERIOD_S, "horizon": HORIZON_PERIODS, "latency_bound": BOUND,
        "drain_below": DRAIN_BELOW, **more,
    }  # fmt: skip
    return Admission(**options)


def source_name(name: str) -> str:
    """A name SQL takes without quotes."""
    return name.replace("-", "_").replace(" ", "_")


def _rising_race(session: Any, seed: int, quick: bool) -> Race:
    SAY(f"rising load, seed {seed}")
    periods = QUICK_RISING_PERIODS if quick else RISING_PERIODS
    rng = np.random.default_rng([seed, 5])
    workload = rising(rng, (1.0, MOST / FEWEST), STREAMS, periods)
    totals = workload.rates_per_s.sum(axis=0)
    capacity = float(np.sort(totals)[-5:].mean()) / (MOST * SATURATED)
    # Static: packed by the rates at first into so small lanes that there are as many as the peak
    # needs, then left alone.
    first = float(totals[:SETTLING_PERIODS].mean())
    small = first / (MOST * SATURATED)
    static = _admission("par", capacity, lane_capacity=small, lanes_max=MOST, drain_below=None)
    sources = {source_name(name): _admission(name, capacity) for name in ("drf-m", "ard")}
    sources["static"] = static
    return run_race(session, workload, sources, capacity, frozen=["static"])


_MEASURES: dict[str, Callable[[Race, str], float]] = {
    "redirected": lambda race, source: race.redirected_per_period(source),
    "queued": lambda race, source: float(np.mean(race.laps[source].queued_rows)),
    "latency": lambda race, source: race.laps[source].mean_latency_s,
    "late": lambda race, source: float(np.mean(np.array(race.laps[source].latest_lane_s) > BOUND)),
    "lanes": lambda race, source: float(np.mean(race.laps[source].lanes)),
}


def mean(races: Sequence[Race], measure: str, name: str) -> float:
    """One measure of a strategy over the races."""
    return float(np.mean([_MEASURES[measure](race, source_name(name)) for race in races]))


def order_parts(table: Mapping[str, Mapping[str, float]]) -> dict[str, bool]:
    """Whether the strategies come in the order of the paper, on each workload."""
    parts = {}
    for workload, found in table.items():
        parts[f"{workload}: drf-m <= ard"] = found["drf-m"] <= found["ard"]
        parts[f"{workload}: ard < par"] = found["ard"] < found["par"]
    return parts


def shown(table: Mapping[str, Mapping[str, float]], form: str) -> str:
    """One measure of every strategy on every workload."""
    return "; ".join(
        f"{workload}: " + ", ".join(f"{name} {found[name]:{form}}" for name in ORDER)
        for workload, found in table.items()
    )


def lateness(races: Mapping[str, list[Race]]) -> str:
    """How many batches took longer than a period."""
    every = [race for found in races.values() for race in found]
    late, all_batches = sum(r.late_batches for r in every), sum(r.batches for r in every)
    return f"{late} of {all_batches} batches took longer than {BATCH_S:g} s"


def _few_even_streams() -> StreamWorkload:
    """For the first batches of a session."""
    return stream_workload("constw", np.random.default_rng(0), 4, SETTLING_PERIODS)
