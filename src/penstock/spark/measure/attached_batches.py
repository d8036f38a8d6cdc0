"""The batches of a query that Penstock did not build, as its progress reports them.

Such a query keeps no ledger, so arrivals are inferred. Its sources hand over what they have, so
rows of a batch arrived after the batch before it was formed; they are taken to have come evenly.
"""

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import numpy as np

from penstock.model.decision import USUAL_SHARE
from penstock.model.observation import LatencyObservation
from penstock.spark.measure.source_lag import lag_rows
from penstock.spark.measure.spread_latencies import SpreadLatencies

# Descriptions that name a place: whoever reads from it reads the same rows.
_PLACES = re.compile(r"(FileStreamSource|Kafka\w*|Kinesis\w*|Delta\w*)\[.+\]")


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
    rows_of: Mapping[str, int] = field(default_factory=dict)  # by source; see `sources_of`

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
                gathered_s, sources_of(query, report.get("sources", [])),
            )
        )  # fmt: skip
    return found


def sources_of(query: str, sources: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    """Rows by source, each once, though a query may read a source twice.

    What does not say where it reads from (a rate, a source of the user's own) is another source in
    every query.
    """
    found: dict[str, int] = {}
    for number, source in enumerate(sources):
        place = str(source.get("description", ""))
        key = place if _PLACES.match(place) else f"{query}/{number}"
        found[key] = max(found.get(key, 0), int(source.get("numInputRows", 0)))
    return found


def shares_of_rows(newest: Mapping[str, AttachedBatch]) -> dict[str, float]:
    """By query: the part of its rows that is its own to count, by its newest batch with rows.

    A row that several queries read is counted once: each of them counts its part.
    """
    readers = Counter(source for batch in newest.values() for source in batch.rows_of)
    return {
        query: sum(rows / readers[source] for source, rows in batch.rows_of.items()) / batch.rows
        if batch.rows_of
        else 1.0
        for query, batch in newest.items()
    }


@dataclass(frozen=True)
class QueryRate:
    """What the rows of a query's batches are seen by."""

    rate_per_s: float = math.nan
    share: float = 1.0  # of its rows that it counts; see `shares_of_rows`


def latency_of(
    batches: Sequence[AttachedBatch], rates: Mapping[str, QueryRate], max_latency_s: float,
    share: float = USUAL_SHARE,
) -> LatencyObservation | None:  # fmt: skip
    """Latency of the rows of some batches; None when there were none.

    `share` of them must be within `max_latency_s`: the latency that so many of them kept is told.
    """
    filled = [batch for batch in batches if batch.rows > 0]
    if not filled:
        return None
    of = [rates[batch.query] for batch in filled]
    behind = [
        batch.lag_rows / one.rate_per_s if one.rate_per_s > 0 else 0.0
        for batch, one in zip(filled, of, strict=True)
    ]
    rows = np.array([batch.rows * one.share for batch, one in zip(filled, of, strict=True)])
    newest_s = np.array([b.duration_s + late for b, late in zip(filled, behind, strict=True)])
    spread_s = np.array([batch.gathered_s for batch in filled])
    spread = SpreadLatencies(rows, newest_s, newest_s + spread_s)
    return LatencyObservation(
        count=round(float(rows.sum())),
        mean_s=float(np.average(newest_s + spread_s / 2, weights=rows)),
        p95_s=spread.quantile_s(0.95),
        max_s=float(spread.most_s.max()),
        in_time_share=spread.rows_within(max_latency_s) / float(rows.sum()),
        share_s=spread.quantile_s(share),
    )
