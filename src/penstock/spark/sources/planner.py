"""Streams to lanes while a query runs: rates measured, the strategy asked, lanes kept in bounds.

Everything is decided in the source's runner, so a controller that dies leaves admission at work.
"""

from collections import deque

import numpy as np

from penstock.admission.algorithm1 import AdmissionPlan
from penstock.admission.decide import decide_admission
from penstock.admission.names import Names
from penstock.admission.problem import NEW, AdmissionProblem
from penstock.admission.registry import strategy_named
from penstock.forecast.metadata import StreamMetadata
from penstock.model.observation import AdmissionRecord, Floats, Ints
from penstock.spark.sources.settings import Limits
from penstock.spark.sources.streams import NO_LANE, StreamTable

PERIODS_KEPT = 40  # of each stream's rates
SAMPLES_KEPT = 8  # of each lane's queue
DECISIONS_KEPT = 16
PREFIX = "lane-"


class LanePlanner:
    """Keeps rates and queues, and decides when a period is over."""

    def __init__(self, limits: Limits, steady_s: float) -> None:
        self.limits = limits
        self.decisions: deque[AdmissionRecord] = deque(maxlen=DECISIONS_KEPT)
        self.redirected = 0  # streams that changed lanes, in all
        self._queues: dict[int, deque[float]] = {}
        self._rates: Floats = np.empty((0, 0))
        self._counted: Ints = np.empty(0, dtype=np.int64)  # rows arrived by the last period's end
        self._last_s = steady_s  # periods are counted by the clock that is never set
        self._number = 0

    def due(self, steady_s: float) -> bool:
        """Whether a period is over."""
        return steady_s - self._last_s >= self.limits.period_s

    def sample(self, table: StreamTable, rows: Ints) -> None:
        """What waits in each lane after a batch was formed."""
        lane, waiting = table.lane[rows], table.waiting[rows]
        placed = lane != NO_LANE
        for number, queue in _sums(lane[placed], waiting[placed]).items():
            self._queues.setdefault(number, deque(maxlen=SAMPLES_KEPT)).append(queue)

    def newest_rates(self, rows: Ints) -> Floats:
        """Rows a second of streams in the last period; zero where nothing was measured."""
        if self._rates.shape[1] == 0 or len(rows) == 0 or rows.max() >= len(self._rates):
            return np.zeros(len(rows))
        newest: Floats = np.nan_to_num(self._rates[rows, -1])
        return newest

    def place(
        self, table: StreamTable, rows: Ints, metadata: StreamMetadata, now_s: float,
        steady_s: float,
    ) -> bool:  # fmt: skip
        """Give every stream a lane, anew when a period is over; True if it was decided anew."""
        homeless = rows[table.lane[rows] == NO_LANE]
        if self.due(steady_s) or (len(homeless) and len(homeless) == len(rows)):
            self._measure(table, steady_s)
            self._decide(table, rows, metadata, now_s)
            return True
        if len(homeless):
            self._squeeze_in(table, rows, homeless)
        return False

    def keep(self, table: StreamTable, rows: Ints) -> None:
        """Lanes as they are, and some lane for those that have none."""
        homeless = rows[table.lane[rows] == NO_LANE]
        if len(homeless) == len(rows):
            table.lane[homeless] = 1
        elif len(homeless):
            self._squeeze_in(table, rows, homeless)

    def _squeeze_in(self, table: StreamTable, rows: Ints, homeless: Ints) -> None:
        """Streams that come within a period go where least is carried, until it is over."""
        has = rows[table.lane[rows] != NO_LANE]
        lanes, of = np.unique(table.lane[has], return_inverse=True)
        load = np.bincount(of, self.newest_rates(has), len(lanes)) + 1e-9 * np.bincount(of)
        quiet = np.argsort(load, kind="stable")
        table.lane[homeless] = lanes[quiet[np.arange(len(homeless)) % len(lanes)]]

    def _measure(self, table: StreamTable, steady_s: float) -> None:
        elapsed_s = max(steady_s - self._last_s, 1e-3)
        known, count = len(self._counted), len(table)
        arrived = table.taken + table.waiting
        rate = np.full(count, np.nan)
        rate[:known] = np.maximum(arrived[:known] - self._counted, 0) / elapsed_s
        # What waited when a stream was first seen has to be carried too.
        rate[known:] = arrived[known:] / self.limits.period_s
        grown = np.full((count, self._rates.shape[1]), np.nan)
        grown[:known] = self._rates
        self._rates = np.concatenate([grown, rate[:, None]], axis=1)[:, -PERIODS_KEPT:]
        self._counted = arrived
        self._last_s = steady_s

    def _decide(
        self, table: StreamTable, rows: Ints, metadata: StreamMetadata, now_s: float
    ) -> None:
        limits = self.limits
        before = table.lane[rows].copy()
        lanes = np.unique(before[before != NO_LANE])
        place = np.searchsorted(lanes, before)
        problem = AdmissionProblem(
            rates_per_s=self._rates[rows],
            lane=np.where(before == NO_LANE, NEW, place),
            queue_rows=self._queue_samples(lanes),
            lane_capacity_per_s=limits.lane_capacity_per_s,
            latency_bound_s=limits.latency_bound_s,
            horizon=limits.horizon,
            metadata=metadata,
            age_periods=np.maximum(now_s - table.joined_s[rows], 0.0) / limits.period_s,
            drain_below=limits.drain_below,
            overload_by=limits.overload_by,
        )
        names = Names([table.names[row] for row in rows.tolist()], [_named(n) for n in lanes])
        decision = decide_admission(problem, strategy_named(limits.strategy), names)
        new = [int(name.removeprefix(PREFIX)) for name in names.of_new(decision.plan.new_lanes)]
        chosen = np.concatenate([lanes, np.array(new, dtype=np.int64)])[decision.plan.lane]
        reasons = list(decision.reasons)
        chosen = self._within_bounds(chosen, rows, reasons)
        table.lane[rows] = chosen
        self._record(decision.plan, before, chosen, reasons, decision.infeasible, now_s)

    def _within_bounds(self, chosen: Ints, rows: Ints, reasons: list[str]) -> Ints:
        """Fold the lightest lanes into others where there are more than allowed."""
        used, of = np.unique(chosen, return_inverse=True)
        surplus = len(used) - self.limits.lanes_max
        if surplus <= 0:
            return chosen
        load = np.bincount(of, self.newest_rates(rows), len(used))
        order = np.argsort(load, kind="stable")
        kept, target = order[surplus:], np.arange(len(used))
        for lane in order[:surplus][::-1].tolist():
            least = kept[np.argmin(load[kept])]
            target[lane] = least
            load[least] += load[lane]
        reasons.append(
            f"{len(used)} lanes were wanted and lanes_max is {self.limits.lanes_max}: the lightest "
            "share, and what they cannot take stays queued"
        )
        return used[target[of]]

    def _queue_samples(self, lanes: Ints) -> Floats:
        samples = np.full((len(lanes), SAMPLES_KEPT), np.nan)
        for row, lane in enumerate(lanes.tolist()):
            queue = self._queues.get(lane, ())
            if queue:
                samples[row, SAMPLES_KEPT - len(queue) :] = queue
        return samples

    def _record(
        self, plan: AdmissionPlan, before: Ints, after: Ints, reasons: list[str],
        infeasible: str | None, now_s: float,
    ) -> None:  # fmt: skip
        had, has = np.unique(before[before != NO_LANE]), np.unique(after)
        redirected = int(((before != after) & (before != NO_LANE)).sum())
        self.redirected += redirected
        self._number += 1
        for gone in set(self._queues) - set(has.tolist()):
            del self._queues[gone]
        self.decisions.append(
            AdmissionRecord(
                self._number, now_s, self.limits.strategy, len(after), len(had), len(has),
                redirected, len(np.setdiff1d(has, had)), len(np.setdiff1d(had, has)),
                plan.lower_bound, plan.total_rate_per_s, tuple(reasons), infeasible,
            )
        )  # fmt: skip


def _named(lane: int) -> str:
    return f"{PREFIX}{lane}"


def _sums(lane: Ints, rows: Ints) -> dict[int, float]:
    if len(lane) == 0:
        return {}
    numbers, of = np.unique(lane, return_inverse=True)
    return dict(zip(numbers.tolist(), np.bincount(of, rows).tolist(), strict=True))
