"""L6 (Fig. 12 to 14): ALBIC against COLA on the flights jobs."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from experiments.allocation.trials.flights import (
    MAX_MIGRATIONS,
    Course,
    by_albic,
    by_cola,
    course,
    from_scratch,
)
from experiments.allocation.workloads.flights import most_periods
from experiments.claim import Claim, judged, save_figure
from experiments.statistics import spread
from penstock.allocation.problem import Floats

JOBS = (2, 3, 4)
QUICK_PERIODS = 14
ANEW = 3  # periods in which COLA is tried on job 4


def claim(folder: Path, seeds: tuple[int, ...], quick: bool) -> Claim:
    """ALBIC in rounds of ten migrations, COLA anew each period."""
    count = QUICK_PERIODS if quick else most_periods()
    ours = {job: [course(job, count, by_albic(seed)) for seed in seeds] for job in JOBS}
    theirs = {job: [course(job, count, by_cola(seed)) for seed in seeds] for job in JOBS[:-1]}
    # As in the paper: migrating everything each period is beyond what job 4's cluster could do.
    theirs[4] = [from_scratch(4, ANEW, by_cola(seed)) for seed in seeds]
    lines = [
        f"job {job}: load index {_late(ours[job], 'load_index')} against "
        f"{_late(theirs[job], 'load_index')}%, collocation {_late(ours[job], 'collocation')} "
        f"against {_late(theirs[job], 'collocation')}%, load distance "
        f"{_late(ours[job], 'load_distance')} against {_late(theirs[job], 'load_distance')}, "
        f"migrations a round {_late(ours[job], 'migrations')} against "
        f"{_late(theirs[job], 'migrations')}"
        for job in JOBS
    ]
    return judged(
        "L6",
        paper="job 2: load index to about 50% (COLA 75%), 10 migrations a round against about 200; "
        "job 3: half the collocation; job 4: about 61%",
        ours="ALBIC against COLA, last quarter: " + "; ".join(lines),
        where="pure",
        parts=_parts(ours, theirs),
        figures=_figure(folder, ours, theirs),
        numbers={
            f"job{job}_{who}_{what}": _tail(courses[job], what).tolist()
            for who, courses in (("albic", ours), ("cola", theirs))
            for job in JOBS
            for what in ("load_index", "collocation")
        },
    )


def _tail(courses: Sequence[Course], what: str) -> Floats:
    """The mean over the last quarter of each run."""
    values = [getattr(one, what) for one in courses]
    return np.array([column[-max(1, len(column) // 4) :].mean() for column in values])


def _late(courses: Sequence[Course], what: str) -> str:
    return f"{spread(_tail(courses, what)):.1f}"


def _parts(ours: dict[int, list[Course]], theirs: dict[int, list[Course]]) -> dict[str, bool]:
    index, cola_index = (_tail(one[2], "load_index").mean() for one in (ours, theirs))
    collocated = {job: _tail(ours[job], "collocation").mean() for job in JOBS}
    by_cola_4 = _tail(theirs[4], "collocation").mean()
    most_moved = max(one.migrations.max() for job in JOBS for one in ours[job])
    return {
        "job 2: load index below 60%": index < 60,
        "job 2: below COLA's": index < cola_index,
        f"ALBIC migrates at most {MAX_MIGRATIONS} a round": most_moved <= MAX_MIGRATIONS,
        "job 2: COLA migrates over ten times as many": _tail(theirs[2], "migrations").mean()
        > 10 * MAX_MIGRATIONS,
        "job 3: about half of job 2's collocation": 0.4 < collocated[3] / collocated[2] < 0.6,
        "job 4: COLA collocates about 61%": abs(by_cola_4 - 61) < 10,
        "job 4: ALBIC at most ten points behind": collocated[4] > by_cola_4 - 10,
    }


def _figure(
    folder: Path, ours: dict[int, list[Course]], theirs: dict[int, list[Course]]
) -> tuple[str, ...]:
    figure = Figure(figsize=(10, 7))
    shown = ("collocation", "load_index", "load_distance")
    for row, axes in zip(shown, figure.subplots(3, 3, sharex=True), strict=True):
        for job, axis in zip(JOBS, axes, strict=True):
            axis.plot(getattr(ours[job][0], row), label="ALBIC")
            axis.plot(getattr(theirs[job][0], row), label="COLA")
            if row == shown[0]:
                axis.set_title(f"job {job}")
            if job == JOBS[0]:
                axis.set_ylabel(row.replace("_", " ") + (" , %" if row != shown[2] else ", points"))
    axes[-1].legend()
    return save_figure(figure, folder, "allocation-L6")
