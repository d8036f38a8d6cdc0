"""Whether what a policy foretold came: of the periods in which it said so, how many kept the share.

A decision speaks of the rows that arrive until executors asked for now could serve (`ahead_s`); it
foretells that the share is kept where the latency it expects for the share is within the bound. And
of all rows it spoke of, whatever the bound, as many as the share are to take no longer than that.
"""

from dataclasses import dataclass

import numpy as np

from penstock.sim.run import SimulationResult


@dataclass(frozen=True)
class Calibration:
    """Periods in which the share was foretold to be kept, and in how many of them it was."""

    foretold: int = 0
    kept: int = 0
    rows: int = 0  # that any decision spoke of, once for each
    within: int = 0  # those of them that took no longer than it expected of the share

    @property
    def kept_share(self) -> float:
        """NaN where nothing was foretold."""
        return self.kept / self.foretold if self.foretold else float("nan")

    @property
    def within_share(self) -> float:
        """NaN likewise."""
        return self.within / self.rows if self.rows else float("nan")


NOTHING_FORETOLD = Calibration()


def calibration(result: SimulationResult) -> Calibration:
    """Over a run; periods that no row arrived in say nothing."""
    scenario, results = result.scenario, result.results
    arrived_s = results.at_s - results.latency_s
    order = np.argsort(arrived_s, kind="stable")
    latency_s, count = results.latency_s[order], results.rows[order]
    late_by = np.concatenate(
        [[0], np.cumsum(np.where(latency_s > scenario.max_latency_s, count, 0))]
    )
    rows_by = np.concatenate([[0], np.cumsum(count)])
    said = np.array(
        [
            (step.at_s, step.at_s + numbers["ahead_s"], numbers["latency_expected_s"])
            for step in result.steps
            if step.decision is not None
            and "latency_expected_s" in (numbers := step.decision.numbers)
        ]
    )
    if not len(said):
        return NOTHING_FORETOLD
    edges = np.searchsorted(arrived_s[order], said[:, :2])
    rows, missed = (by[edges[:, 1]] - by[edges[:, 0]] for by in (rows_by, late_by))
    within = sum(
        int(count[begin:end][latency_s[begin:end] <= expected_s].sum())
        for (begin, end), expected_s in zip(edges.tolist(), said[:, 2].tolist(), strict=True)
    )
    promised = (rows > 0) & (said[:, 2] <= scenario.max_latency_s)
    kept = missed[promised] <= (1 - scenario.share) * rows[promised]
    return Calibration(len(kept), int(kept.sum()), int(rows.sum()), within)
