"""A5 on Spark: a load that rises from two to eight lanes."""

from collections.abc import Sequence
from pathlib import Path

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
    source_name,
)
from experiments.claim import Claim, judged, save_figure


def claim(races: Sequence[Race], folder: Path) -> Claim:
    """DRF-M, ARD and lanes that stay."""
    names = ("drf-m", "ard", "static")
    late = {n: mean(races, "late", n) for n in names}
    latency = {n: mean(races, "latency", n) for n in names}
    lanes = {n: mean(races, "lanes", n) for n in names}
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
    return judged(
        "A5",
        paper="load from 4 to 32 machines and back, bound 5 s: DRF-M violates it for less time "
        "than ARD; static has the lowest latency and uses all nodes when few suffice",
        ours=f"load from {FEWEST} to {MOST} lanes: {shown}; {SCALE}",
        where="spark",
        parts=parts,
        figures=_courses(races[0], names, folder),
        numbers={"late_share": late, "latency_s": latency, "lanes": lanes},
    )


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
