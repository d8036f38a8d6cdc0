"""The four open points of Algorithm 1, and the parts strategies share.

Balkesen et al. 2013, s. 2.2.
"""

from typing import Protocol

import numpy as np

from penstock.admission.problem import AdmissionProblem, Bools, Situation
from penstock.admission.ticks import FULL
from penstock.forecast.outlook import Outlook
from penstock.model.observation import Floats


class Strategy(Protocol):
    """What may differ between strategies; none keeps anything between decisions."""

    @property
    def name(self) -> str:
        """The name by which it is chosen."""

    @property
    def keeps_assignments(self) -> bool:
        """False when lanes count as empty and every stream is placed anew."""

    def believe(self, problem: AdmissionProblem) -> Outlook:
        """Rates of the near future, as the strategy sees them."""

    def is_overloaded(self, situation: Situation) -> Bools:
        """Lanes that must give streams away."""

    def pick_streams(self, situation: Situation, overloaded: Bools) -> Bools:
        """Streams that leave the overloaded lanes."""

    def accepts_streams(self, situation: Situation) -> Bools:
        """Lanes that may take streams in."""

    def placement_order(self, situation: Situation) -> Floats:
        """Streams are placed in decreasing order of this."""


class KeepsAssignments:
    """What strategies that keep assignments have in common; they differ in beliefs and picks."""

    keeps_assignments = True

    def is_overloaded(self, situation: Situation) -> Bools:
        """Late, or too full."""
        return late_or_too_full(situation)

    def accepts_streams(self, situation: Situation) -> Bools:
        """Lanes below the level up to which streams are taken in."""
        return below_level(situation)

    def placement_order(self, situation: Situation) -> Floats:
        """Largest need first."""
        return situation.need_per_s


def late_or_too_full(situation: Situation) -> Bools:
    """Overloaded: its queue says it is later than the bound, or its streams need more than it has.

    Differs from Balkesen et al. 2013, s. 2.5: unless asked otherwise, load counts too, as in step 1
    of fig. 5.
    """
    late = situation.late
    return late if situation.problem.overload_by == "queue" else late | situation.too_full


def until_it_fits(situation: Situation, overloaded: Bools, priority: Floats) -> Bools:
    """Streams of the overloaded lanes, largest priority first, until the rest and the queue fit.

    Among equals the largest goes first; a stream that needs nothing stays, as moving it helps no
    one. A stream alone in its lane stays too: it is no better off elsewhere.
    """
    lane, size, load = situation.problem.lane, situation.size, situation.stream_load
    limit = FULL - situation.queued
    picked = np.zeros(len(lane), dtype=bool)
    excess = overloaded & (load > limit)
    rows = np.flatnonzero(np.append(excess, False)[lane] & (size > 0))
    if len(rows) == 0:
        return picked
    order = np.lexsort((-size[rows], -priority[rows], lane[rows]))
    rows = rows[order]
    gone = np.cumsum(size[rows]) - size[rows]  # moved before this one, over all lanes
    first = np.concatenate(([True], lane[rows][1:] != lane[rows][:-1]))
    gone -= np.maximum.accumulate(np.where(first, gone, 0))
    left = load[lane[rows]] - gone
    alone = left == size[rows]
    picked[rows[(left > limit[lane[rows]]) & ~alone]] = True
    return picked


def below_level(situation: Situation) -> Bools:
    """Lanes that need less than the share of capacity up to which they are filled."""
    return situation.load < situation.level
