"""Claims A1, A2 and A5 of seed 000 at small scale on Spark: `reproduce admission --where spark`.

Time runs five times faster than in the paper and four lanes carry the mean load instead of ten,
so that the lanes of three strategies are worked off within one batch on a small machine.
"""

import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from experiments.admission.lanes import BOUND_S, HORIZON_PERIODS, simulate
from experiments.admission.race import (
    BATCH_S,
    SETTLING_PERIODS,
    SHORT_PERIOD_S,
    TIME_SCALE,
    Race,
    run_race,
)
from experiments.claim import Claim, save_figure
from penstock.admission.registry import STRATEGIES
from penstock.model.sources import Admission
from penstock.spark.run.session import build_session
from penstock.workloads.admission_streams import (
    WORKLOADS,
    StreamWorkload,
    rising,
    stream_workload,
)

STREAMS = 80
LOAD_LEVEL = 4  # lanes the mean load fills
PERIODS, QUICK_PERIODS, SIM_PERIODS = 25, 10, 42
RISING_PERIODS, QUICK_RISING_PERIODS = 40, 20
FEWEST, MOST = 2, 8  # lanes the rising load fills at its lowest and at its highest
SATURATED = 0.9
BOUND = BOUND_S / TIME_SCALE
DRAIN_BELOW = 0.8
# A batch that is late finds more rows than one period brings: what a lane takes at most in a batch
# is above what it is planned for, or the lateness of a batch would never be made up for.
CATCH_UP = 1.2
ORDER = ("drf-m", "ard", "par")
SCALE = (
    f"time runs {TIME_SCALE:g} times faster (periods of {SHORT_PERIOD_S:g} s, bound {BOUND:g} s on "
    f"a lane's queue), one batch a period, {SETTLING_PERIODS} periods not counted"
)


def run_on_spark(folder: Path, seeds: Sequence[int], quick: bool) -> list[Claim]:
    """A1 and A2 over the six workloads, and A5, each strategy a source of the same query.

    Time passes as it does, so the first seed only: eight minutes.
    """
    with _session() as session:
        _say("warming up")
        run_race(session, _warm_up(), _entrants(100.0))
        races = _six_workloads(session, seeds[:1], quick)
        rising_races = [_rising_race(session, seed, quick) for seed in seeds[:1]]
    return [_claim_a1(races, folder), _claim_a2(races), _claim_a5(rising_races, folder)]


@contextmanager
def _session() -> Iterator[Any]:
    with tempfile.TemporaryDirectory(prefix="penstock-", ignore_cleanup_errors=True) as made:
        log_file = Path(made) / "spark.log"
        session = build_session("race", "local[2]", quick_start=True, log_file=log_file)
        try:
            yield session
        finally:
            session.stop()


def _six_workloads(session: Any, seeds: Sequence[int], quick: bool) -> dict[str, list[Race]]:
    races: dict[str, list[Race]] = {name: [] for name in WORKLOADS}
    periods = QUICK_PERIODS if quick else PERIODS
    for seed in seeds:
        for row, name in enumerate(WORKLOADS):
            _say(f"{name} ({row + 1} of {len(WORKLOADS)}), seed {seed}")
            rng = np.random.default_rng([seed, row])
            workload = stream_workload(name, rng, STREAMS, periods)
            entrants = _entrants(workload.mean_total_per_s / LOAD_LEVEL)
            races[name].append(run_race(session, workload, entrants))
    return races


def _entrants(capacity_per_s: float) -> dict[str, Admission]:
    return {_source(name): _admission(name, capacity_per_s) for name in ORDER}


def _admission(strategy: str, capacity_per_s: float, **more: Any) -> Admission:
    chosen: dict[str, Any] = {
        "strategy": strategy, "lane_capacity": capacity_per_s,
        "lane_rows": round(CATCH_UP * capacity_per_s * BATCH_S), "lanes_max": 64,
        "period": SHORT_PERIOD_S, "horizon": HORIZON_PERIODS, "latency_bound": BOUND,
        "drain_below": DRAIN_BELOW, "overload_by": "queue", **more,
    }  # fmt: skip
    return Admission(**chosen)


def _source(name: str) -> str:
    """A name SQL takes without quotes."""
    return name.replace("-", "_").replace(" ", "_")


def _claim_a1(races: Mapping[str, list[Race]], folder: Path) -> Claim:
    moved = {w: {n: _mean(races[w], "redirected", n) for n in ORDER} for w in races}
    parts = _order_parts(moved)
    parts |= {f"{w}: par moves most of {STREAMS}": moved[w]["par"] > STREAMS / 2 for w in races}
    return Claim(
        id="A1",
        paper="mean redirections in a period: DRF-M <= ARD < PAR on every workload, and PAR moves "
        "most of the 80 streams",
        ours=f"{_shown(moved, '{:.2f}')}; {SCALE}; {_lateness(races)}",
        holds=all(parts.values()),
        where="spark",
        reason=_reason(
            parts,
            f"With {LOAD_LEVEL} lanes instead of ten more streams stay where they are: PAR moves "
            f"{_simulated_par()} in the simulator at this load level. {_lateness(races)}: where "
            "many are late, lanes had less than their capacity.",
        ),
        figures=_bars(moved, folder),
        numbers={"parts": parts, "redirected_per_period": moved},
    )


def _simulated_par() -> str:
    """Redirections in a period by PAR, simulated with as many lanes as here."""
    found = []
    for row, name in enumerate(WORKLOADS):
        workload = stream_workload(name, np.random.default_rng([1, row]), STREAMS, SIM_PERIODS)
        capacity = workload.mean_total_per_s / LOAD_LEVEL
        found.append(float(np.mean(simulate(workload, STRATEGIES["par"], capacity).redirected)))
    return f"{min(found):.0f} to {max(found):.0f} of {STREAMS}"


def _claim_a2(races: Mapping[str, list[Race]]) -> Claim:
    queued = {w: {n: _mean(races[w], "queued", n) for n in ORDER} for w in races}
    latency = {w: {n: _mean(races[w], "latency", n) for n in ORDER} for w in races}
    parts = {f"queued rows: {name}": holds for name, holds in _order_parts(queued).items()}
    parts |= {f"latency: {name}": holds for name, holds in _order_parts(latency).items()}
    return Claim(
        id="A2",
        paper="rows held back at clients and delay: DRF-M <= ARD < PAR on every workload",
        ours=f"rows queued at streams after a batch: {_shown(queued, '{:.0f}')}; seconds from "
        f"arrival to the end of the batch: {_shown(latency, '{:.2f}')}",
        holds=all(parts.values()),
        where="spark",
        reason=_reason(
            parts,
            "A redirection takes effect between two batches and holds nothing back here, so that "
            "what is queued shows which lanes were too full, not how many streams moved. "
            f"{_lateness(races)}: where many are late, lanes had less than their capacity.",
        ),
        numbers={"parts": parts, "queued_rows": queued, "latency_s": latency},
    )


def _rising_race(session: Any, seed: int, quick: bool) -> Race:
    _say(f"rising load, seed {seed}")
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
    entrants = {_source(name): _admission(name, capacity) for name in ("drf-m", "ard")} | {
        "static": static
    }
    return run_race(session, workload, entrants, capacity, frozen=["static"])


def _claim_a5(races: Sequence[Race], folder: Path) -> Claim:
    names = ("drf-m", "ard", "static")
    late = {n: _mean(races, "late", n) for n in names}
    latency = {n: _mean(races, "latency", n) for n in names}
    lanes = {n: _mean(races, "lanes", n) for n in names}
    parts = {
        "drf-m is late for less time than ard": late["drf-m"] < late["ard"],
        "static has the lowest latency": min(latency, key=lambda n: latency[n]) == "static",
        "static uses more lanes than both": lanes["static"] > max(lanes["drf-m"], lanes["ard"]),
    }
    shown = "; ".join(
        f"{n}: a lane late for {late[n]:.1%} of batches, {latency[n]:.2f} s from arrival to the "
        f"end of the batch, {lanes[n]:.1f} lanes"
        for n in names
    )
    return Claim(
        id="A5",
        paper="load from 4 to 32 machines and back, bound 5 s: DRF-M violates it for less time "
        "than ARD; static has the lowest latency and uses all nodes when few suffice",
        ours=f"load from {FEWEST} to {MOST} lanes: {shown}; {SCALE}",
        holds=all(parts.values()),
        where="spark",
        reason=_reason(parts),
        figures=_courses(races[0], names, folder),
        numbers={"parts": parts, "late_share": late, "latency_s": latency, "lanes": lanes},
    )


_MEASURES: dict[str, Callable[[Race, str], float]] = {
    "redirected": lambda race, source: race.redirected_per_period(source),
    "queued": lambda race, source: float(np.mean(race.laps[source].queued_rows)),
    "latency": lambda race, source: race.laps[source].mean_latency_s,
    "late": lambda race, source: float(np.mean(np.array(race.laps[source].latest_lane_s) > BOUND)),
    "lanes": lambda race, source: float(np.mean(race.laps[source].lanes)),
}


def _mean(races: Sequence[Race], measure: str, name: str) -> float:
    return float(np.mean([_MEASURES[measure](race, _source(name)) for race in races]))


def _order_parts(table: Mapping[str, Mapping[str, float]]) -> dict[str, bool]:
    parts = {}
    for workload, found in table.items():
        parts[f"{workload}: drf-m <= ard"] = found["drf-m"] <= found["ard"]
        parts[f"{workload}: ard < par"] = found["ard"] < found["par"]
    return parts


def _reason(parts: Mapping[str, bool], cause: str = "") -> str:
    failed = [name for name, holds in parts.items() if not holds]
    if not failed:
        return ""
    hold = f"{len(parts) - len(failed)} of {len(parts)} parts hold"
    return f"{hold}; not so: {'; '.join(failed)}. {cause}".strip()


def _shown(table: Mapping[str, Mapping[str, float]], form: str) -> str:
    return "; ".join(
        f"{workload}: " + ", ".join(f"{name} {form.format(found[name])}" for name in ORDER)
        for workload, found in table.items()
    )


def _lateness(races: Mapping[str, list[Race]]) -> str:
    every = [race for found in races.values() for race in found]
    late, all_batches = sum(r.late_batches for r in every), sum(r.batches for r in every)
    return f"{late} of {all_batches} batches took longer than {BATCH_S:g} s"


def _bars(table: Mapping[str, Mapping[str, float]], folder: Path) -> tuple[str, ...]:
    figure = Figure(figsize=(6.5, 3.4))
    axis = figure.subplots()
    place = np.arange(len(table))
    for number, name in enumerate(reversed(ORDER)):
        heights = [found[name] for found in table.values()]
        axis.bar(place + 0.25 * (number - 1), heights, 0.25, label=name)
    axis.set_xticks(place, list(table))
    axis.set_ylabel("redirections per period")
    axis.set_yscale("symlog", linthresh=1.0)
    axis.legend(fontsize=8)
    return save_figure(figure, folder, "admission-A1-spark")


def _courses(race: Race, names: Sequence[str], folder: Path) -> tuple[str, ...]:
    figure = Figure(figsize=(7, 5))
    upper, lower = figure.subplots(2, 1, sharex=True)
    for name in names:
        lap = race.laps[_source(name)]
        upper.plot(lap.latest_lane_s, label=name)
        lower.plot(lap.lanes, label=name)
    upper.axhline(BOUND, color="grey", ls="--")
    upper.set(ylabel="queue of the latest lane, s")
    lower.set(ylabel="lanes", xlabel="batch")
    lower.legend(fontsize=8)
    return save_figure(figure, folder, "admission-A5-spark")


def _warm_up() -> StreamWorkload:
    return stream_workload("constw", np.random.default_rng(0), 4, SETTLING_PERIODS)


def _say(what: str) -> None:
    print(f"admission on Spark: {what} ...", file=sys.stderr, flush=True)
