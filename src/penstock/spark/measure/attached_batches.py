"""The batches of a query that Penstock did not build, as its progress reports them.

Such a query keeps no ledger, so arrivals are inferred. Its sources hand over what they have, so
rows of a batch arrived after the batch before it was formed; they are taken to have come evenly.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np

from penstock.model.observation import LatencyObservation
from penstock.spark.measure.source_lag import lag_rows

POINTS = 50  # of each batch's even spread of latencies


@dataclass(frozen=True)
class AttachedBatch:
    """One batch that ended."""

    query: str
    batch_id: int
    formed_s: float
    duration_s: float
    rows: int
    lag_rows: int  # waiting at sources that report their newest offset
    gathered_s: float  # since when its rows may have waited, before it was formed

    @property
    def ended_s(self) -> float:
        """When its results were out."""
        return self.formed_s + self.duration_s


def read_batches(
    query: str, reports: Iterable[dict[str, Any]], last: AttachedBatch | None, interval_s: float
) -> list[AttachedBatch]:
    """The batches after `last`, oldest first; triggers that found nothing are no batches."""
    found: list[AttachedBatch] = []
    for report in reports:
        before = found[-1] if found else last
        formed_s = datetime.fromisoformat(report["timestamp"]).timestamp()
        # By number: the machine's clock may have been set back between two batches.
        if before is not None and report["batchId"] <= before.batch_id:
            continue
        duration = report.get("durationMs", {})
        if "addBatch" not in duration:
            continue
        gathered_s = 0.0
        if before is not None:
            # A query that waits for rows takes them at once: they wait for a batch or a trigger.
            between_s = max(0.0, formed_s - before.formed_s)
            gathered_s = min(between_s, before.duration_s + interval_s)
        found.append(
            AttachedBatch(
                query, report["batchId"], formed_s, duration.get("triggerExecution", 0) / 1e3,
                report.get("numInputRows", 0), sum(map(lag_rows, report.get("sources", []))),
                gathered_s,
            )
        )  # fmt: skip
    return found


def latency_of(
    batches: Sequence[AttachedBatch], rate_per_s: float, max_latency_s: float
) -> LatencyObservation | None:
    """Latency of the rows of some batches; None when there were none."""
    filled = [batch for batch in batches if batch.rows > 0]
    if not filled:
        return None
    steps = (np.arange(POINTS) + 0.5) / POINTS
    behind = [batch.lag_rows / rate_per_s if rate_per_s > 0 else 0.0 for batch in filled]
    newest_s = np.array([b.duration_s + late for b, late in zip(filled, behind, strict=True)])
    spread_s = np.array([batch.gathered_s for batch in filled])
    latency_s = (newest_s[:, None] + spread_s[:, None] * steps).ravel()
    weight = np.repeat([batch.rows / POINTS for batch in filled], POINTS)
    order = np.argsort(latency_s)
    reached = np.cumsum(weight[order]) / weight.sum()
    p95 = latency_s[order][min(int(np.searchsorted(reached, 0.95)), len(order) - 1)]
    return LatencyObservation(
        count=sum(batch.rows for batch in filled),
        mean_s=float(np.average(latency_s, weights=weight)),
        p95_s=float(p95),
        max_s=float((newest_s + spread_s).max()),
        in_time_share=float(weight[latency_s <= max_latency_s].sum() / weight.sum()),
    )
