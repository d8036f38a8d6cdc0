"""D2 on Spark: do the model and the measurement order allocations alike?"""

from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from experiments.claim import Claim, judged, save_figure
from experiments.drs.claims.d2 import ORDERED
from experiments.drs.on_spark.apart import FRAMES_PER_S, QUICK, Found, Length, measure
from experiments.on_spark import reporter
from experiments.statistics import rank_correlation


def claim(folder: Path, seeds: tuple[int, ...], quick: bool) -> Claim:
    """Video logo detection apart: estimated against measured mean latency."""
    found = measure(QUICK if quick else Length(), seeds, reporter("drs"))
    measured = [trial.latency_s for trial in found.trials]
    correlation = rank_correlation(list(found.estimates_s), measured)
    rows = [
        f"{trial.name} estimated {estimate:.2f} s, corrected "
        f"{found.correction.corrected_s(estimate):.2f} s, measured {trial.latency_s:.2f} s"
        for trial, estimate in zip(found.trials, found.estimates_s, strict=True)
    ]
    why = (
        "Allocations whose estimates are near each other differ less than what batches add, which "
        "the model does not know."
    )
    return judged(
        "D2",
        paper="Estimated and measured sojourn times order the allocations alike.",
        ours=f"Video logo detection apart on Spark, {FRAMES_PER_S:g} frames/s, components with "
        f"processors of their own, {len(found.trials)} allocations, {len(seeds)} run(s) each: rank "
        f"correlation {correlation:.2f}; the estimate is {_share(found):.0%} of the measured, as "
        f"mmk knows no batches; {found.correction}. {'; '.join(rows)}.",
        where="spark",
        parts={f"rank correlation of at least {ORDERED:g}": correlation >= ORDERED},
        why=why,
        figures=save_figure(_figure(found), folder, "drs-D2-spark"),
        numbers={
            "rank_correlation": correlation,
            "allocations": [trial.name for trial in found.trials],
            "estimated_s": list(found.estimates_s),
            "measured_s": measured,
            "service_s": list(found.service_s),
            "offset_s": found.correction.offset_s,
            "factor": found.correction.factor,
            "error_s": found.correction.error_s,
        },
    )


def _share(found: Found) -> float:
    pairs = zip(found.estimates_s, found.trials, strict=True)
    shares = [estimate / trial.latency_s for estimate, trial in pairs if np.isfinite(estimate)]
    return float(np.mean(shares))


def _figure(found: Found) -> Figure:
    figure = Figure(figsize=(5, 3.8))
    axes = figure.add_subplot()
    finite = [
        (estimate, trial)
        for estimate, trial in zip(found.estimates_s, found.trials, strict=True)
        if np.isfinite(estimate)
    ]
    estimates = np.array([estimate for estimate, _ in finite])
    axes.plot(estimates, [trial.latency_s for _, trial in finite], "o")
    for estimate, trial in finite:
        axes.annotate(trial.name, (estimate, trial.latency_s), fontsize=7)
    line = np.sort(estimates)
    axes.plot(line, [found.correction.corrected_s(e) for e in line], "--", label="corrected")
    axes.plot(line, line, ":", color="grey", label="estimate = measured")
    axes.set_xlabel("estimated by mmk (s)")
    axes.set_ylabel("measured on Spark (s)")
    axes.set_title("VLD apart, extract:match:aggregate")
    axes.legend(fontsize=7)
    return figure
