"""Jobs: cohorts of rows that move together, as columns."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Jobs:
    """Cohorts in order of time: when each is here, when its rows arrived, how many they are."""

    at_s: Floats
    origin_s: Floats  # mean arrival of its rows at their source
    rows: Ints

    def __len__(self) -> int:
        return len(self.at_s)

    @property
    def total_rows(self) -> int:
        """Rows of all jobs."""
        return int(self.rows.sum())

    def where(self, mask: NDArray[np.bool_]) -> "Jobs":
        """The chosen jobs."""
        if mask.all():
            return self
        return Jobs(self.at_s[mask], self.origin_s[mask], self.rows[mask])

    def split_at(self, moment_s: float) -> tuple["Jobs", "Jobs"]:
        """Jobs before a moment, and those at or after it."""
        cut = int(np.searchsorted(self.at_s, moment_s, side="left"))
        before = Jobs(self.at_s[:cut], self.origin_s[:cut], self.rows[:cut])
        return before, Jobs(self.at_s[cut:], self.origin_s[cut:], self.rows[cut:])


NO_JOBS = Jobs(np.empty(0), np.empty(0), np.empty(0, dtype=np.int64))


def merged(parts: Sequence[Jobs]) -> Jobs:
    """All jobs in order of time; the order of the parts breaks ties."""
    parts = [part for part in parts if len(part)]
    if not parts:
        return NO_JOBS
    if len(parts) == 1 and (parts[0].at_s[1:] >= parts[0].at_s[:-1]).all():
        return parts[0]
    at_s = np.concatenate([part.at_s for part in parts])
    origin_s = np.concatenate([part.origin_s for part in parts])
    rows = np.concatenate([part.rows for part in parts])
    order = np.argsort(at_s, kind="stable")
    return Jobs(at_s[order], origin_s[order], rows[order])


def separated(jobs: Jobs, step_s: float, most_per_step: int) -> Jobs:
    """Jobs of several rows taken apart where a step holds few rows: a bulk that finds all servers.

    An operator that emits several rows at once hands them on as one job; served by one server,
    they would wait for each other even where servers are free.
    """
    if not len(jobs) or int(jobs.rows.max()) == 1:
        return jobs
    step = np.floor((jobs.at_s - jobs.at_s[0]) / step_s).astype(np.int64)
    _, place = np.unique(step, return_inverse=True)
    few = np.bincount(place, jobs.rows)[place] <= most_per_step
    times = np.where(few, jobs.rows, 1)
    rows = np.where(few, 1, jobs.rows)
    return Jobs(
        np.repeat(jobs.at_s, times), np.repeat(jobs.origin_s, times), np.repeat(rows, times)
    )


def coalesced(jobs: Jobs, step_s: float, most_per_step: int) -> Jobs:
    """Neighbours joined where a step holds too many jobs; their times become weighted means."""
    if len(jobs) <= most_per_step:
        return jobs
    step = np.floor((jobs.at_s - jobs.at_s[0]) / step_s).astype(np.int64)
    first = np.flatnonzero(np.concatenate(([True], step[1:] != step[:-1])))
    counts = np.diff(np.append(first, len(jobs)))
    if counts.max() <= most_per_step:
        return jobs
    rank = np.arange(len(jobs)) - np.repeat(first, counts)
    per_job = np.repeat(counts, counts)
    slot = np.where(per_job > most_per_step, rank * most_per_step // per_job, rank)
    new = np.concatenate(([True], (step[1:] != step[:-1]) | (slot[1:] != slot[:-1])))
    starts = np.flatnonzero(new)
    rows = np.add.reduceat(jobs.rows, starts)
    at_s = np.add.reduceat(jobs.at_s * jobs.rows, starts) / rows
    origin_s = np.add.reduceat(jobs.origin_s * jobs.rows, starts) / rows
    return Jobs(at_s, origin_s, rows)
