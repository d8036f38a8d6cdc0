"""Algorithm 1 of Balkesen et al. 2013, s. 2.2: who leaves, who is new, and where they go.

Overloaded lanes give streams away, the others take streams in as far as they accept any; streams
to be placed are sorted by the strategy and packed by best fit; what fits nowhere opens new lanes.
A lane that is left without streams is retired.

Differs from Balkesen et al. 2013, s. 2.2: an overloaded lane that gave all its streams away takes
streams again, and a lane keeps room for the queue it has.
"""

from dataclasses import dataclass

import numpy as np

from penstock.admission.best_fit import best_fit
from penstock.admission.drain import lanes_to_drain
from penstock.admission.lower_bound import lower_bound
from penstock.admission.problem import NEW, Bools, Situation
from penstock.admission.strategy import Strategy
from penstock.admission.ticks import FULL
from penstock.model.observation import Floats, Ints


@dataclass(frozen=True)
class AdmissionPlan:
    """The lane of every stream; lanes numbered from `lanes_before` on are new."""

    lane: Ints
    lanes_before: int
    new_lanes: int
    overloaded: Bools  # of the lanes before
    drained: Bools  # lanes emptied because the others had room
    redirected: Ints  # streams that had another lane, by row
    retired: Ints  # lanes left without streams, by row
    lower_bound: int  # no plan whose lanes all have room has fewer, for the rates believed in
    need_per_s: Floats  # of every stream, for what comes and what waits
    total_rate_per_s: float  # expected of all streams; node_counts goes by it
    backlog_per_s: float = 0.0  # beside it, to have what waits at streams served within the bound

    @property
    def lanes_in_use(self) -> int:
        """Lanes that have streams."""
        return self.lanes_before + self.new_lanes - len(self.retired)


def assign_streams(situation: Situation, strategy: Strategy) -> AdmissionPlan:
    """One optimisation period."""
    problem = situation.problem
    overloaded = strategy.is_overloaded(situation)
    moving = strategy.pick_streams(situation, overloaded) | (problem.lane == NEW)
    accepting = strategy.accepts_streams(situation)
    emptied = overloaded & (_streams_in(problem.lane[~moving], problem.lanes) == 0)
    takers = (accepting & ~overloaded) | emptied
    order = strategy.placement_order(situation)
    queued = situation.queued if strategy.keeps_assignments else np.zeros_like(situation.queued)
    packing = _Packing(situation, queued, order)
    lane = packing.placed(moving, takers)
    drained = np.zeros(problem.lanes, dtype=bool)
    if problem.drain_below is not None and strategy.keeps_assignments:
        lane, drained = _after_draining(packing, moving, takers, lane)
    return _plan(situation, lane, overloaded, drained)


@dataclass(frozen=True)
class _Packing:
    """What is needed to pack streams into lanes, whichever of them move."""

    situation: Situation
    queued: Ints  # room that lanes keep for their own queues, in ticks
    order: Floats

    def placed(self, moving: Bools, takers: Bools) -> Ints:
        """The lane of every stream once those that move are in the lanes that take them."""
        problem, size, level = self.situation.problem, self.situation.size, self.situation.level
        lane = problem.lane.copy()
        rows = np.flatnonzero(moving)
        if len(rows) == 0:
            return lane
        rows = rows[np.argsort(-self.order[rows], kind="stable")]
        staying = np.bincount(lane[~moving], size[~moving], problem.lanes).astype(np.int64)
        bins = np.flatnonzero(takers)
        room = level - staying[bins] - self.queued[bins]
        number = np.concatenate([bins, problem.lanes + np.arange(len(rows))])
        lane[rows] = number[best_fit(size[rows], room, level)]
        return lane


def _after_draining(
    packing: _Packing, moving: Bools, takers: Bools, lane: Ints
) -> tuple[Ints, Bools]:
    """The plan with some lanes drained, if it opens no lane that would not be opened anyway."""
    problem = packing.situation.problem
    surplus = lanes_to_drain(packing.situation, lane, takers)
    # Room that is there in sum may be in pieces too small; then fewer lanes are tried.
    for count in sorted(
        {len(surplus), len(surplus) // 2, min(len(surplus), 1)} - {0}, reverse=True
    ):
        drained = np.zeros(problem.lanes, dtype=bool)
        drained[surplus[:count]] = True
        leaving = moving | np.append(drained, False)[problem.lane]
        fewer = packing.placed(leaving, takers & ~drained)
        if fewer.max() <= max(int(lane.max()), problem.lanes - 1):
            return fewer, drained
    return lane, np.zeros(problem.lanes, dtype=bool)


def _plan(situation: Situation, lane: Ints, overloaded: Bools, drained: Bools) -> AdmissionPlan:
    problem = situation.problem
    new_lanes = max(0, int(lane.max()) + 1 - problem.lanes) if len(lane) else 0
    empty = _streams_in(lane, problem.lanes + new_lanes) == 0
    return AdmissionPlan(
        lane=lane,
        lanes_before=problem.lanes,
        new_lanes=new_lanes,
        overloaded=overloaded,
        drained=drained,
        redirected=np.flatnonzero((lane != problem.lane) & (problem.lane != NEW)),
        retired=np.flatnonzero(empty),
        lower_bound=lower_bound(situation.size, FULL),
        need_per_s=situation.need_per_s,
        total_rate_per_s=float(situation.outlook.needed_rate_per_s.sum()),
        backlog_per_s=float(situation.backlog_per_s.sum()),
    )


def _streams_in(lane: Ints, lanes: int) -> Ints:
    return np.bincount(lane[lane != NEW], minlength=lanes)
