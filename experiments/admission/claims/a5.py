"""A5 (Fig. 14): a load that rises from 4 to 32 machines, and who is late."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from experiments.admission.trials.lanes import (
    AS_JUDGED,
    BOUND_S,
    Course,
    Rules,
    simulate,
)
from experiments.admission.workloads.streams import StreamWorkload, rising
from experiments.claim import Claim, judged, save_figure
from experiments.statistics import Spread, spread
from penstock.admission.registry import STRATEGIES
from penstock.model.observation import Floats, Ints

FEWEST, MOST = 4, 32  # machines the load saturates at its lowest and at its highest
SATURATED = 0.9  # share of a machine at which it counts as saturated
PERIODS, QUICK_PERIODS = 240, 48
STREAMS, QUICK_STREAMS = 320, 64
RULES = {"queue or load": AS_JUDGED, "queue": Rules(overload_by="queue")}


def claim(folder: Path, seeds: tuple[int, ...], quick: bool) -> Claim:
    """Figure 14: time beyond the bound, latency and lanes of DRF-M, ARD and 32 static lanes."""
    courses: dict[str, list[Course]] = {}
    for seed in seeds:
        workload, capacity = _rising(seed, quick)
        for rules_name, rules in RULES.items():
            for name in ("drf-m", "ard"):
                course = simulate(workload, STRATEGIES[name], capacity, rules=rules)
                courses.setdefault(f"{name}, {rules_name}", []).append(course)
        start = _spread_evenly(workload.rates_per_s.mean(axis=1), MOST)
        courses.setdefault("static 32", []).append(simulate(workload, None, capacity, start))
    late, latency, lanes = (
        {name: _over(runs, measure) for name, runs in courses.items()}
        for measure in ("late_share", "latency_s", "lanes")
    )
    fewest = spread(min(run.fewest_lanes) for run in courses["static 32"])
    parts = {
        # The paper's own rule; where load counts as well, neither is late.
        "drf-m is late for less time than ard": late["drf-m, queue"].mean < late["ard, queue"].mean,
        "drf-m's latest lane is less late": latency["drf-m, queue or load"].mean
        < latency["ard, queue or load"].mean,
        "static has the lowest latency": min(latency, key=lambda name: latency[name].mean)
        == "static 32",
        "3 to 4 lanes would suffice at times": all(
            min(run.fewest_lanes) <= FEWEST for run in courses["static 32"]
        ),
    }
    shown = "; ".join(
        f"{name}: late {late[name]:.1%} of the time, latest lane {latency[name]:.2f} s, lanes "
        f"{lanes[name].mean:.1f}"
        for name in courses
    )
    return judged(
        "A5",
        paper="load from 4 to 32 machines, bound 5 s: DRF-M violates it for less time than ARD; "
        "static 32 has the lowest latency and uses 32 nodes when 3 to 4 suffice",
        ours=f"{shown}; fewest lanes at the lowest {fewest.mean:.1f}",
        where="sim",
        parts=parts,
        figures=_figure(courses, folder),
        numbers={
            "late_share": {name: values.pair for name, values in late.items()},
            "latency_s": {name: values.pair for name, values in latency.items()},
        },
    )


def _rising(seed: int, quick: bool) -> tuple[StreamWorkload, float]:
    rng = np.random.default_rng([seed, 5])
    streams, periods = (QUICK_STREAMS, QUICK_PERIODS) if quick else (STREAMS, PERIODS)
    workload = rising(rng, (1.0, MOST / FEWEST), streams, periods)
    peak = float(np.sort(workload.rates_per_s.sum(axis=0))[-5:].mean())
    return workload, peak / (MOST * SATURATED)


def _spread_evenly(rates: Floats, lanes: int) -> Ints:
    """The largest first, each to the least loaded lane."""
    lane, load = np.zeros(len(rates), dtype=np.int64), np.zeros(lanes)
    for stream in np.argsort(-rates):
        lane[stream] = load.argmin()
        load[lane[stream]] += rates[stream]
    return lane


def _over(courses: Sequence[Course], measure: str) -> Spread:
    return spread(float(np.mean(getattr(course, measure))) for course in courses)


def _figure(courses: dict[str, list[Course]], folder: Path) -> tuple[str, ...]:
    figure = Figure(figsize=(7, 5))
    upper, lower = figure.subplots(2, 1, sharex=True)
    for name, runs in courses.items():
        upper.plot(runs[0].latency_s, label=name)
        lower.plot(runs[0].lanes, label=name)
    lower.plot(courses["static 32"][0].fewest_lanes, label="lower bound", color="black", ls=":")
    upper.axhline(BOUND_S, color="grey", ls="--")
    upper.set(ylabel="latency of the latest lane, s")
    upper.set_yscale("symlog", linthresh=1.0)
    lower.set(ylabel="lanes", xlabel="period")
    lower.legend(fontsize=8)
    return save_figure(figure, folder, "admission-A5")
