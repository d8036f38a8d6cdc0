"""Whether what a policy foretold came: of the periods in which it said so, how many kept the share.

A decision speaks of the rows that arrive until executors asked for now could serve (`ahead_s`); it
foretells that the share is kept where the latency it expects for the share is within the bound.
"""

from dataclasses import dataclass

import numpy as np

from penstock.sim.run import SimulationResult


@dataclass(frozen=True)
class Calibration:
    """Periods in which the share was foretold to be kept, and in how many of them it was."""

    foretold: int = 0
    kept: int = 0

    @property
    def kept_share(self) -> float:
        """NaN where nothing was foretold."""
        return self.kept / self.foretold if self.foretold else float("nan")


NOTHING_FORETOLD = Calibration()


def calibration(result: SimulationResult) -> Calibration:
    """Over a run; periods that no row arrived in say nothing."""
    scenario, results = result.scenario, result.results
    arrived_s = results.at_s - results.latency_s
    order = np.argsort(arrived_s, kind="stable")
    late = np.where(results.latency_s > scenario.max_latency_s, results.rows, 0)
    rows_by = np.concatenate([[0], np.cumsum(results.rows[order])])
    late_by = np.concatenate([[0], np.cumsum(late[order])])
    said = [
        (step.at_s, step.at_s + numbers["ahead_s"])
        for step in result.steps
        if step.decision is not None
        and "latency_expected_s" in (numbers := step.decision.numbers)
        and numbers["latency_expected_s"] <= scenario.max_latency_s
    ]
    if not said:
        return NOTHING_FORETOLD
    edges = np.searchsorted(arrived_s[order], np.array(said))
    rows, missed = (by[edges[:, 1]] - by[edges[:, 0]] for by in (rows_by, late_by))
    kept = missed[rows > 0] <= (1 - scenario.share) * rows[rows > 0]
    return Calibration(len(kept), int(kept.sum()))
