"""A1 on Spark: redirections in a period."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from experiments.admission.on_spark.race import Race
from experiments.admission.on_spark.strategies import (
    LOAD_LEVEL,
    ORDER,
    SCALE,
    STREAMS,
    lateness,
    mean,
    order_parts,
    shown,
    six_workloads,
)
from experiments.admission.trials.lanes import simulate
from experiments.admission.workloads.streams import (
    WORKLOADS,
    stream_workload,
)
from experiments.claim import Claim, judged, save_figure
from penstock.admission.registry import STRATEGIES

SIM_PERIODS = 42


def claim(folder: Path, seeds: tuple[int, ...], quick: bool) -> Claim:
    """DRF-M, ARD and PAR on the six workloads."""
    return judge(six_workloads(seeds, quick), folder)


def judge(races: Mapping[str, list[Race]], folder: Path) -> Claim:
    """What these races show."""
    moved = {w: {n: mean(races[w], "redirected", n) for n in ORDER} for w in races}
    parts = order_parts(moved)
    parts |= {f"{w}: par moves most of {STREAMS}": moved[w]["par"] > STREAMS / 2 for w in races}
    return judged(
        "A1",
        paper="mean redirections in a period: DRF-M <= ARD < PAR on every workload, and PAR moves "
        "most of the 80 streams",
        ours=f"{shown(moved, '.2f')}; {SCALE}; {lateness(races)}",
        where="spark",
        parts=parts,
        why=f"With {LOAD_LEVEL} lanes instead of ten more streams stay where they are: PAR moves "
        f"{_simulated_par()} in the simulator at this load level. {lateness(races)}: where "
        "many are late, lanes had less than their capacity.",
        figures=_bars(moved, folder),
        numbers={"redirected_per_period": moved},
    )


def _simulated_par() -> str:
    """Redirections in a period by PAR, simulated with as many lanes as here."""
    found = []
    for row, name in enumerate(WORKLOADS):
        workload = stream_workload(name, np.random.default_rng([1, row]), STREAMS, SIM_PERIODS)
        capacity = workload.mean_total_per_s / LOAD_LEVEL
        found.append(float(np.mean(simulate(workload, STRATEGIES["par"], capacity).redirected)))
    return f"{min(found):.0f} to {max(found):.0f} of {STREAMS}"


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
