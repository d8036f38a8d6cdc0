"""Panes by time: whole ones in turn, or rate-aware, where lanes remember the panes before."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.model.durations import parse_duration_s
from penstock.model.observation import Ints
from penstock.model.route import Route
from penstock.routing.panes import (
    PaneHistory,
    SubPanes,
    new_history,
    pane_length,
    pane_numbers,
    pane_routes,
    rate_aware_routes,
)
from penstock.spark.routes.exchange import Document
from penstock.spark.routes.method import LaneMethod, NextTable


class ByPanes:
    """A lane goes on where the lane of its number ended in the batch before."""

    def __init__(self, rate_aware: bool) -> None:
        self._rate_aware = rate_aware
        self.kind = "panes" if rate_aware else ""
        self.every_batch = rate_aware

    def first(self, route: Route) -> Document:
        return {"lanes": {}}

    def next(self, route: Route, content: Document, reports: list[Document]) -> NextTable:
        lanes = dict(content["lanes"])
        for report in reports:
            if _is_history(report.get("history")):
                lanes[str(report.get("lane"))] = report["history"]
        return NextTable({"lanes": lanes})

    def lane(self, route: Route, content: Document, lane: int) -> LaneMethod:
        assert route.time is not None
        assert route.window is not None
        assert route.slide is not None
        length_us = pane_length(_us(route.window), _us(route.slide))
        history = _history(content["lanes"].get(str(lane)), route.partitions)
        rate_aware = self._rate_aware
        return _Panes(route.time, length_us, route.partitions, lane, history, rate_aware)


@dataclass
class _Panes(LaneMethod):
    time: str
    length_us: int
    partitions: int
    lane: int
    history: PaneHistory
    rate_aware: bool

    def routes(self, batch: pa.RecordBatch) -> Ints:
        panes = pane_numbers(_ticks_us(batch.column(self.time)), self.length_us)
        if not self.rate_aware:
            return pane_routes(panes, self.partitions)
        found, self.history = rate_aware_routes(panes, self.history)
        return found

    def report(self) -> Document | None:
        return {"lane": self.lane, "history": _as_json(self.history)} if self.rate_aware else None


def _us(span: str | float) -> int:
    return round(parse_duration_s(span, "Route(window)") * 1e6)


def _ticks_us(column: "pa.Array") -> Ints:
    """Microseconds of timestamps, or whole numbers as they are; a row without time is at 0."""
    if pa.types.is_timestamp(column.type):
        column = column.cast(pa.timestamp("us", column.type.tz)).view(pa.int64())
    filled = column.fill_null(0) if column.null_count else column
    return np.asarray(filled.to_numpy(zero_copy_only=False), dtype=np.int64)


def _as_json(history: PaneHistory) -> Document:
    return {
        "received": history.received_rows.tolist(),
        "sizes": history.recent_sizes.tolist(),
        "round": [[cut.nodes.tolist(), cut.rows.tolist()] for cut in history.last_round],
        "open": history.open_pane,
        "size": history.open_size,
    }


def _is_history(document: Any) -> bool:
    """Whether a report is whole; a damaged one is a lane's memory less."""
    known = ("received", "sizes", "round", "open", "size")
    return isinstance(document, dict) and all(name in document for name in known)


def _history(document: Any, nodes: int) -> PaneHistory:
    """What was remembered; nothing, if it was of another number of tasks."""
    if not isinstance(document, dict) or len(document["received"]) != nodes:
        return new_history(nodes)
    return PaneHistory(
        np.array(document["received"], dtype=np.float64),
        np.array(document["sizes"], dtype=np.float64),
        tuple(
            SubPanes(np.array(nodes, dtype=np.int64), np.array(rows, dtype=np.int64))
            for nodes, rows in document["round"]
        ),
        document["open"],
        document["size"],
    )
