"""Streams to lanes while a query runs: rates measured, the strategy asked, lanes kept in bounds.

Everything is decided in the source's runner, so a controller that dies leaves admission at work.
Streams that come within a period get a lane at once and count as new until it is over: Algorithm 1
may then place them anew, which redirects no one.
"""

from collections import deque

import numpy as np

from penstock.admission.algorithm1 import AdmissionPlan
from penstock.admission.decide import decide_admission
from penstock.admission.joining import lanes_for_new
from penstock.admission.names import Names
from penstock.admission.problem import NEW, AdmissionProblem
from penstock.admission.registry import strategy_named
from penstock.forecast.metadata import StreamMetadata, one_unknown_before
from penstock.model.observation import AdmissionRecord, Floats, Ints
from penstock.model.sources import FORECASTING
from penstock.spark.sources.backends.backend import Bools
from penstock.spark.sources.lane_bounds import within_bounds
from penstock.spark.sources.lane_queues import LaneQueues
from penstock.spark.sources.settings import Limits
from penstock.spark.sources.stream_rates import LEAST_WATCHED, StreamRates
from penstock.spark.sources.streams import NO_LANE, StreamTable

DECISIONS_KEPT = 16
PREFIX = "lane-"


class LanePlanner:
    """Keeps rates and queues, and decides when a period is over."""

    def __init__(self, limits: Limits, steady_s: float) -> None:
        self.limits = limits
        self.decisions: deque[AdmissionRecord] = deque(maxlen=DECISIONS_KEPT)
        self.redirected = 0  # streams that changed lanes, in all
        self.queues = LaneQueues(steady_s)
        self._rates = StreamRates()
        self._need_per_s: Floats = np.empty(0)  # of each stream, as last believed
        self._settled: Bools = np.empty(0, dtype=bool)  # streams whose lane is Algorithm 1's
        self._began = False  # whether any decision was made
        self._last_s: float | None = None  # periods are counted by the clock that is never set
        self._number = 0

    def newest_rates(self, rows: Ints) -> Floats:
        """Rows a second of streams in the last period; zero where nothing was measured."""
        rates: Floats = np.nan_to_num(self._rates.newest(rows))
        return rates

    def forget(self, kept: Bools) -> None:
        """Keep these streams only."""
        self._rates.forget(kept)
        known = kept[: len(self._settled)]
        self._settled, self._need_per_s = self._settled[known], self._need_per_s[known]

    def place(
        self, table: StreamTable, rows: Ints, metadata: StreamMetadata, now_s: float,
        steady_s: float,
    ) -> bool:  # fmt: skip
        """Give every stream a lane, anew when a period is over; True if it was decided anew."""
        self._look(table, rows, steady_s)
        homeless = rows[table.lane[rows] == NO_LANE]
        due = self._due(steady_s)
        if due:
            self._rates.measure(table.taken + table.waiting, self.limits.period_s, steady_s)
        all_new = len(homeless) > 0 and len(homeless) == len(rows)
        if due or all_new or (not self._began and self._crowded(table, rows)):
            self._began = True
            if due or all_new:
                self._last_s = steady_s
            self._decide(table, rows, metadata, now_s, steady_s)
            return True
        if len(homeless):
            self._let_in(table, rows, metadata)
        return False

    def _due(self, steady_s: float) -> bool:
        """Whether a period is over; where no rate is known yet, half of one is enough to learn."""
        if self._last_s is None:
            self._last_s = steady_s
        share = 1.0 if self._rates.measured else LEAST_WATCHED
        return steady_s - self._last_s >= share * self.limits.period_s

    def _crowded(self, table: StreamTable, rows: Ints) -> bool:
        """Whether more waits for a lane than it can take within the bound.

        Lanes from before a restart are kept until rates are known. Where restarts come faster than
        that, they would be kept for ever.
        """
        waiting_rows = np.bincount(np.maximum(table.lane[rows], 0), table.waiting[rows])
        limits = self.limits
        most_rows = limits.lane_capacity_per_s * limits.latency_bound_s
        return bool((waiting_rows > most_rows).any())

    def keep(self, table: StreamTable, rows: Ints) -> None:
        """Lanes as they are, and the lightest for those that have none."""
        homeless = rows[table.lane[rows] == NO_LANE]
        if len(homeless):
            lanes, load_per_s = self._loads(table, rows)
            table.lane[homeless] = lanes[np.argmin(load_per_s)] if len(lanes) else 1

    def _look(self, table: StreamTable, rows: Ints, steady_s: float) -> None:
        self._rates.look(table.taken + table.waiting, rows, steady_s)
        has_lane = table.lane != NO_LANE
        known = len(self._settled)  # of others, a lane is from before a restart
        self._settled = np.append(self._settled, has_lane[known:]) & has_lane
        self._need_per_s = np.append(self._need_per_s, np.zeros(len(table) - known))

    def _loads(self, table: StreamTable, rows: Ints) -> tuple[Ints, Floats]:
        """The lanes there are, and what the streams of each were last believed to need."""
        has = rows[table.lane[rows] != NO_LANE]
        lanes, of = np.unique(table.lane[has], return_inverse=True)
        load_per_s: Floats = np.bincount(of, self._need_per_s[has], len(lanes)).astype(np.float64)
        return lanes, load_per_s

    def _let_in(self, table: StreamTable, rows: Ints, metadata: StreamMetadata) -> None:
        """Streams that come within a period go where they fit, by what is known of them."""
        limits, new = self.limits, np.flatnonzero(table.lane[rows] == NO_LANE)
        lanes, load_per_s = self._loads(table, rows)
        homeless = rows[new]
        need_per_s = self._expected(rows, metadata.take(new))
        need_per_s += table.waiting[homeless] / limits.latency_bound_s
        found = lanes_for_new(
            need_per_s, load_per_s, limits.lane_capacity_per_s, limits.accept_below
        )
        numbers = np.append(lanes, self._free(lanes, len(homeless)))
        self._need_per_s[homeless] = need_per_s
        before, wanted = table.lane[rows], table.lane[rows].copy()
        wanted[new] = numbers[found]
        table.lane[rows] = within_bounds(wanted, before, self._need_per_s[rows], limits).lane

    def _expected(self, rows: Ints, new: StreamMetadata) -> Floats:
        """Rates of streams without a history, by meta-data or else as an average stream's."""
        seen = self._rates.newest(rows)
        seen = seen[~np.isnan(seen)]
        average = seen.mean(keepdims=True) if len(seen) else np.full(1, np.nan)
        rates = np.concatenate([average, np.full(len(new), np.nan)])[:, None]
        problem = AdmissionProblem(
            rates_per_s=rates,
            lane=np.full(len(rates), NEW),
            queue_rows=np.empty((0, 0)),
            lane_capacity_per_s=self.limits.lane_capacity_per_s,
            latency_bound_s=self.limits.latency_bound_s,
            horizon=self.limits.horizon,
            metadata=one_unknown_before(new),
        )
        return (
            strategy_named(self.limits.strategy, self._forecaster)
            .believe(problem)
            .needed_rate_per_s[1:]
            .copy()
        )

    @staticmethod
    def _free(lanes: Ints, count: int) -> Ints:
        """Numbers of lanes that are not in use."""
        return np.setdiff1d(np.arange(1, len(lanes) + count + 1), lanes)[:count]

    def _decide(
        self, table: StreamTable, rows: Ints, metadata: StreamMetadata, now_s: float,
        steady_s: float,
    ) -> None:  # fmt: skip
        limits = self.limits
        before = np.where(self._settled[rows], table.lane[rows], NO_LANE)
        lanes = np.unique(before[before != NO_LANE])
        place = np.searchsorted(lanes, before)
        history = self._rates.history(rows)
        problem = AdmissionProblem(
            rates_per_s=history,
            lane=np.where(before == NO_LANE, NEW, place),
            queue_rows=self.queues.samples(lanes),
            lane_capacity_per_s=limits.lane_capacity_per_s,
            latency_bound_s=limits.latency_bound_s,
            horizon=limits.horizon,
            metadata=metadata,
            age_periods=np.maximum(now_s - table.joined_s[rows], 0.0) / limits.period_s,
            backlog_rows=self._backlog(table.waiting[rows], rows, steady_s),
            accept_below=limits.accept_below,
            # Of lanes of which nothing is known yet none is known to be idle.
            drain_below=None if np.isnan(history).all() else limits.drain_below,
            overload_by=limits.overload_by,
        )
        names = Names([table.names[row] for row in rows.tolist()], [_named(n) for n in lanes])
        decision = decide_admission(
            problem, strategy_named(limits.strategy, self._forecaster), names
        )
        new = [int(name.removeprefix(PREFIX)) for name in names.of_new(decision.plan.new_lanes)]
        chosen = np.concatenate([lanes, np.array(new, dtype=np.int64)])[decision.plan.lane]
        self._need_per_s[rows] = decision.plan.need_per_s
        bounded = within_bounds(chosen, before, decision.plan.need_per_s, limits)
        table.lane[rows], self._settled[rows] = bounded.lane, True
        reasons = (*decision.reasons, *bounded.reasons)
        infeasible = " ".join(filter(None, (decision.infeasible, bounded.infeasible))) or None
        self._record(decision.plan, before, bounded.lane, reasons, infeasible, now_s)

    def _backlog(self, waiting: Ints, rows: Ints, steady_s: float) -> Floats:
        """Rows that wait at streams beyond those that come between two batches anyway.

        Half the bound is what batches may take: of rows that came in a longer time, those beyond
        it are late unless more lanes serve them.
        """
        limits = self.limits
        usual_s = min(self.queues.since_batch_s(steady_s), 0.5 * limits.latency_bound_s)
        return np.maximum(waiting - self.newest_rates(rows) * usual_s, 0.0)

    @property
    def _forecaster(self) -> str | None:
        return self.limits.forecaster if self.limits.strategy in FORECASTING else None

    @property
    def _steps_ahead(self) -> int:
        """Periods that the strategy looks ahead; those by last rates see the next one only."""
        return self.limits.horizon if self.limits.strategy in FORECASTING else 1

    def _record(
        self, plan: AdmissionPlan, before: Ints, after: Ints, reasons: tuple[str, ...],
        infeasible: str | None, now_s: float,
    ) -> None:  # fmt: skip
        had, has = np.unique(before[before != NO_LANE]), np.unique(after)
        redirected = int(((before != after) & (before != NO_LANE)).sum())
        self.redirected += redirected
        self._number += 1
        self.queues.keep(has)
        self.decisions.append(
            AdmissionRecord(
                self._number, now_s, self.limits.strategy, len(after), len(had), len(has),
                redirected, len(np.setdiff1d(has, had)), len(np.setdiff1d(had, has)),
                plan.lower_bound, plan.total_rate_per_s, reasons, infeasible,
                horizon_s=self.limits.period_s * self._steps_ahead,
            )
        )  # fmt: skip


def _named(lane: int) -> str:
    return f"{PREFIX}{lane}"
