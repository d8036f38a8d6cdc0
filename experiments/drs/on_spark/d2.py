"""D2 on Spark: do the model and the measurement order allocations alike?"""

from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from experiments.claim import Claim, judged, save_figure
from experiments.drs.claims.d2 import ORDERED
from experiments.drs.on_spark.apart import (
    FRAMES_PER_S,
    QUICK,
    Estimates,
    Found,
    Length,
    Trial,
    measure,
)
from experiments.on_spark import reporter
from experiments.statistics import rank_correlation


def claim(folder: Path, seeds: tuple[int, ...], quick: bool) -> Claim:
    """Video logo detection apart: estimated against measured mean latency."""
    found = measure(QUICK if quick else Length(), seeds, reporter("drs"))
    models = (found.mmk, found.hops)
    correlations = {one.model: _correlation(one, found) for one in models}
    told = "; ".join(
        f"{one.model}: rank correlation {correlations[one.model]:.2f}, "
        f"{_share(one, found):.0%} of the measured, {one.correction}"
        for one in models
    )
    rows = "; ".join(
        f"{trial.name} measured {trial.latency_s:.2f} ± {trial.spread_s:.2f} s, mmk {mmk:.2f} s, "
        f"hops {hops:.2f} s"
        for trial, mmk, hops in zip(
            found.trials, found.mmk.seconds, found.hops.seconds, strict=True
        )
    )
    return judged(
        "D2",
        paper="Estimated and measured sojourn times order the allocations alike.",
        ours=f"Video logo detection apart on Spark, {FRAMES_PER_S:g} frames/s, components with "
        f"processors of their own, {len(found.trials)} allocations, {len(seeds)} run(s) each. "
        f"{told}. {rows}.",
        where="spark",
        parts={
            f"{model}: rank correlation of at least {ORDERED:g}": correlation >= ORDERED
            for model, correlation in correlations.items()
        },
        why="mmk knows nothing of batches, in which frames wait for the batch before at each of "
        "three components and for the slowest task of their own.",
        figures=save_figure(_figure(found), folder, "drs-D2-spark"),
        numbers={
            "rank_correlation": correlations,
            "allocations": [trial.name for trial in found.trials],
            "estimated_s": {one.model: list(one.seconds) for one in models},
            "measured_s": [trial.latency_s for trial in found.trials],
            "spread_s": [trial.spread_s for trial in found.trials],
            "service_s": list(found.service_s),
            "error_s": {one.model: one.correction.error_s for one in models},
        },
    )


def _correlation(estimates: Estimates, found: Found) -> float:
    return rank_correlation(list(estimates.seconds), [trial.latency_s for trial in found.trials])


def _finite(estimates: Estimates, found: Found) -> list[tuple[float, Trial]]:
    pairs = zip(estimates.seconds, found.trials, strict=True)
    return [(expected, trial) for expected, trial in pairs if np.isfinite(expected)]


def _share(estimates: Estimates, found: Found) -> float:
    shares = [expected / trial.latency_s for expected, trial in _finite(estimates, found)]
    return float(np.mean(shares))


def _figure(found: Found) -> Figure:
    figure = Figure(figsize=(9, 3.8))
    for place, estimates in enumerate((found.mmk, found.hops)):
        axes = figure.add_subplot(1, 2, place + 1)
        finite = _finite(estimates, found)
        expected = np.array([one for one, _ in finite])
        axes.errorbar(
            expected,
            [trial.latency_s for _, trial in finite],
            yerr=[trial.spread_s for _, trial in finite],
            fmt="o",
        )
        for one, trial in finite:
            axes.annotate(trial.name, (one, trial.latency_s), fontsize=7)
        line = np.sort(expected)
        corrected = [estimates.correction.corrected_s(one) for one in line]
        axes.plot(line, corrected, "--", label="corrected")
        axes.plot(line, line, ":", color="grey", label="estimate = measured")
        axes.set_xlabel(f"estimated by {estimates.model} (s)")
        axes.set_ylabel("measured on Spark (s)")
        axes.set_title("VLD apart, extract:match:aggregate")
        axes.legend(fontsize=7)
    return figure
