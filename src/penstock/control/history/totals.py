"""What a recorded run came to, from its rows alone: to set two runs side by side."""

import math
from dataclasses import dataclass

from sqlalchemy import case, func, select

from penstock.control.actions import SetExecutors
from penstock.control.history import tables as t
from penstock.control.history.store import HistoryStore


@dataclass(frozen=True)
class Totals:
    """Over all periods of a run, its start-up too; NaN where nothing was measured."""

    periods: int
    duration_s: float
    results: int
    in_time_share: float
    latency_mean_s: float
    latency_max_s: float
    executor_hours: float
    executors_most: int
    changes: int  # of the number of executors


def totals(store: HistoryStore, run: int) -> Totals:
    """The totals of a run; zero and NaN where it holds nothing."""
    o, n, a = t.observations, t.nodes, t.actions
    rows = func.coalesce(o.c.latency_count, 0)
    sums = select(
        func.count(),
        func.coalesce(func.sum(o.c.period_s), 0.0),
        func.coalesce(func.sum(rows), 0),
        func.sum(rows * o.c.latency_in_time_share),
        func.sum(rows * o.c.latency_mean_s),
        func.max(case((rows > 0, o.c.latency_max_s))),
    ).where(o.c.run_id == run)
    held = (
        select(o.c.period_s.label("period_s"), func.count().label("executors"))
        .join(n, (n.c.run_id == o.c.run_id) & (n.c.seq == o.c.seq))
        .where(o.c.run_id == run)
        .group_by(o.c.seq, o.c.period_s)
        .subquery()
    )
    paid = select(func.sum(held.c.period_s * held.c.executors), func.max(held.c.executors))
    acts = select(func.count()).where(
        a.c.run_id == run, a.c.action == SetExecutors.NAME, a.c.done.is_(True)
    )  # fmt: skip
    with store.reading() as connection:
        periods, lasted_s, results, in_time, latency_s, worst_s = connection.execute(sums).one()
        paid_s, most = connection.execute(paid).one()
        changes = connection.execute(acts).scalar_one()
    count = int(results)
    return Totals(
        int(periods),
        float(lasted_s),
        count,
        _each(in_time, count),
        _each(latency_s, count),
        math.nan if worst_s is None else float(worst_s),
        float(paid_s or 0.0) / 3600,
        int(most or 0),
        int(changes),
    )


def _each(total: float | None, count: int) -> float:
    return float(total) / count if count and total is not None else math.nan
