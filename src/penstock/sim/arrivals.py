"""How sources make jobs.

A step with few rows gives one job to each row, so queueing is exact. A step with many gives a
fixed number of jobs with several rows each, so that time to simulate does not grow with the rate.
"""

import numpy as np
from numpy.typing import NDArray

from penstock.sim.jobs import NO_JOBS, Jobs, merged
from penstock.sim.scenario import Scenario, SourceSpec

Floats = NDArray[np.float64]

BLOCK_STEPS = 64


class Stream:
    """The jobs of one source in order.

    They are drawn in blocks of steps whatever span is asked for, so the same rows arrive under
    every policy.
    """

    def __init__(self, source: SourceSpec, scenario: Scenario, rng: np.random.Generator) -> None:
        self.source = source
        self._step_s, self._jobs_per_step, self._rng = scenario.step_s, scenario.jobs_per_step, rng
        self._ahead = NO_JOBS
        self._steps = 0

    def take(self, until_s: float) -> Jobs:
        """The jobs before a moment that were not taken yet."""
        parts = [self._ahead]
        while self._steps * self._step_s < until_s:
            edges_s = self._step_s * np.arange(
                self._steps, self._steps + BLOCK_STEPS + 1, dtype=np.float64
            )
            parts.append(arrivals(self.source, edges_s, self._jobs_per_step, self._rng))
            self._steps += BLOCK_STEPS
        ready = parts[0] if len(parts) == 1 else merged(parts)
        taken, self._ahead = ready.split_at(until_s)
        return taken


def arrivals(
    source: SourceSpec, edges_s: Floats, jobs_per_step: int, rng: np.random.Generator
) -> Jobs:
    """The jobs that arrive at a source in the steps between some moments."""
    expected, count = source.profile.rows_by(edges_s), len(edges_s) - 1
    if source.arrivals == "poisson":
        rows_in_step = rng.poisson(np.maximum(np.diff(expected), 0.0))
    else:
        rows_in_step = np.diff(np.floor(expected + 1e-9)).astype(np.int64)
    jobs_in_step = np.minimum(rows_in_step, jobs_per_step)
    step = np.repeat(np.arange(count), jobs_in_step)
    if len(step) == 0:
        return NO_JOBS
    number = np.arange(len(step)) - np.repeat(np.cumsum(jobs_in_step) - jobs_in_step, jobs_in_step)
    rows, jobs = rows_in_step[step], jobs_in_step[step]
    sizes = rows // jobs + (number < rows % jobs)
    before = number * (rows // jobs) + np.minimum(number, rows % jobs)
    if source.arrivals == "poisson":
        single = rows == jobs
        # Given their number, Poisson arrivals are uniform in expected rows; the sort keeps steps
        # apart because each position stays within its own.
        place = np.where(single, rng.random(len(step)), (before + 0.5 * sizes) / rows)
        place = np.sort(step + place) - step
        reached = expected[step] + place * (expected[step + 1] - expected[step])
    else:
        reached = np.floor(expected[step] + 1e-9) + before + 0.5 * (sizes + 1)
    # Rounding may put a row just outside its step.
    at_s = np.clip(
        source.profile.arrival_s(reached - 1.0), edges_s[step], np.nextafter(edges_s[step + 1], 0.0)
    )
    return Jobs(at_s, at_s, sizes.astype(np.int64))
