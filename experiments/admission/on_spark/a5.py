"""A5 on Spark: lanes alone from two to eight, and the whole system from one to four executors."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from experiments.admission.on_spark.race import (
    Race,
)
from experiments.admission.on_spark.strategies import (
    BOUND,
    FEWEST,
    MOST,
    SCALE,
    mean,
    rising_races,
    source_name,
)
from experiments.admission.on_spark.whole import MOST as MOST_EXECUTORS
from experiments.admission.on_spark.whole import WAYS, Outcome, all_ways
from experiments.claim import Claim, judged, save_figure

STATIC = f"static {MOST_EXECUTORS}"


def claim(folder: Path, seeds: tuple[int, ...], quick: bool) -> Claim:
    """DRF-M, ARD and what stays: lanes alone, then with executors behind them."""
    whole = [all_ways(seed, quick) for seed in seeds]
    return judge(rising_races(seeds, quick), whole, folder)


def judge(races: Sequence[Race], whole: Sequence[Mapping[str, Outcome]], folder: Path) -> Claim:
    """What lanes alone and the whole system show."""
    names = ("drf-m", "ard", "static")
    late = {n: mean(races, "late", n) for n in names}
    latency = {n: mean(races, "latency", n) for n in names}
    lanes = {n: mean(races, "lanes", n) for n in names}
    parts = {
        "drf-m is late for less time than ard": late["drf-m"] < late["ard"],
        "static has the lowest latency": min(latency, key=lambda n: latency[n]) == "static",
        "static uses more lanes than both": lanes["static"] > max(lanes["drf-m"], lanes["ard"]),
        **_whole_parts(whole),
    }
    shown = "; ".join(
        f"{n}: a lane late for {late[n]:.1%} of batches, {latency[n]:.2f} s from arrival to the "
        f"end of the batch, {lanes[n]:.1f} lanes"
        for n in names
    )
    return judged(
        "A5",
        paper="load from 4 to 32 machines and back, bound 5 s: DRF-M violates it for less time "
        "than ARD; static has the lowest latency and uses all nodes when few suffice",
        ours=f"load from {FEWEST} to {MOST} lanes: {shown}; {SCALE}. {_whole_shown(whole)}",
        where="spark",
        parts=parts,
        figures=(*_courses(races[0], names, folder), *_whole_figure(whole, folder)),
        numbers={
            "late_share": late, "latency_s": latency, "lanes": lanes,
            "whole": {name: _whole(whole, name) for name in WAYS},
        },
    )  # fmt: skip


def _whole(runs: Sequence[Mapping[str, Outcome]], name: str) -> dict[str, float]:
    """Means over the seeds of what a way came to with executors behind its lanes."""
    found = [run[name] for run in runs]
    return {
        "in_time_share": float(np.mean([one.in_time_share for one in found])),
        "executor_s": float(np.mean([one.executor_s for one in found])),
        "lanes": float(np.mean([np.mean(one.lanes) for one in found])),
        "redirected": float(np.mean([one.redirected for one in found])),
    }


def _whole_parts(runs: Sequence[Mapping[str, Outcome]]) -> dict[str, bool]:
    found = {name: _whole(runs, name) for name in WAYS}
    drf_m, ard, static = found["drf-m"], found["ard"], found[STATIC]
    return {
        "with executors: drf-m keeps more in time than ard": drf_m["in_time_share"]
        >= ard["in_time_share"],
        "with executors: static keeps most in time": static["in_time_share"]
        >= max(drf_m["in_time_share"], ard["in_time_share"]),
        "with executors: both use fewer executor-seconds than static": static["executor_s"]
        > max(drf_m["executor_s"], ard["executor_s"]),
    }


def _whole_shown(runs: Sequence[Mapping[str, Outcome]]) -> str:
    said = []
    for name in WAYS:
        found = _whole(runs, name)
        said.append(
            f"{name}: {found['in_time_share']:.1%} in time, {found['executor_s']:.0f} "
            f"executor-seconds, {found['lanes']:.1f} lanes, {found['redirected']:.0f} redirections"
        )
    return "The traffic query over files that come, go and burst, 1 to 4 executors: " + (
        "; ".join(said)
    )


def _whole_figure(runs: Sequence[Mapping[str, Outcome]], folder: Path) -> tuple[str, ...]:
    figure = Figure(figsize=(7, 5))
    upper, lower = figure.subplots(2, 1, sharex=True)
    for name, one in runs[0].items():
        upper.step(range(len(one.executors)), one.executors, where="post", label=name)
        lower.step(range(len(one.lanes)), one.lanes, where="post", label=name)
    upper.set(ylabel="executors")
    lower.set(ylabel="lanes", xlabel="period")
    upper.legend(fontsize=8)
    return save_figure(figure, folder, "admission-fig14-spark")


def _courses(race: Race, names: Sequence[str], folder: Path) -> tuple[str, ...]:
    figure = Figure(figsize=(7, 5))
    upper, lower = figure.subplots(2, 1, sharex=True)
    for name in names:
        lap = race.laps[source_name(name)]
        upper.plot(lap.latest_lane_s, label=name)
        lower.plot(lap.lanes, label=name)
    upper.axhline(BOUND, color="grey", ls="--")
    upper.set(ylabel="queue of the latest lane, s")
    lower.set(ylabel="lanes", xlabel="batch")
    lower.legend(fontsize=8)
    return save_figure(figure, folder, "admission-A5-spark")
