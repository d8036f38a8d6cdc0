"""OSG: operators report what values cost, and lanes deal the rows of a batch by it."""

from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from penstock.model.observation import Floats, Ints
from penstock.model.route import Route
from penstock.routing.cost_sketch import CostSketch, empty_cost_sketch
from penstock.routing.count_min import CountMinShape
from penstock.routing.osg import osg_batch_routes
from penstock.spark.routes.exchange import Document
from penstock.spark.routes.fixed import batch_hashes
from penstock.spark.routes.method import LaneMethod, NextTable

# Differs from Kotto-Kombi 2018, ch. 6 table 1, which has an error of 0.05: with 55 cells in a row,
# a thousand values are all taken to cost about the mean; a table here is only sent once a period.
SHAPE = CountMinShape(error=0.005)
# Differs from Kotto-Kombi 2018, ch. 6 s. 4.1, which adds up for ever: costs change, so with each
# table what was known counts for less; a minute of 5 s tables leaves it 1.4% of its weight.
KEPT = 0.7


class ByCost:
    """Each row to the task that will be free first, costly rows first; a batch begins idle."""

    kind = "costs"
    every_batch = False

    def first(self, route: Route) -> Document:
        return sketch_as_json(empty_cost_sketch(SHAPE))

    def next(self, route: Route, content: Document, reports: list[Document]) -> NextTable:
        if not reports:
            return NextTable(content)
        sketch = sketch_of(content).faded(KEPT)
        for report in reports:
            sketch = sketch.merge(sketch_of(report))
        rows = float(sketch.occurrences[: sketch.shape.columns].sum())
        mean_ms = 1e3 * sketch.mean_s
        reason = f"costs of {rows:.0f} rows known, {mean_ms:.3g} ms a row on average"
        return NextTable(sketch_as_json(sketch), (reason,))

    def lane(self, route: Route, content: Document, lane: int) -> LaneMethod:
        return _Dealt(route, sketch_of(content), lane, np.zeros(route.partitions))


@dataclass
class _Dealt(LaneMethod):
    route: Route
    sketch: CostSketch
    lane: int
    free_s: Floats = field(repr=False)

    def routes(self, batch: pa.RecordBatch) -> Ints:
        dealt = osg_batch_routes(batch_hashes(batch, self.route), self.sketch, self.free_s)
        self.free_s = dealt.free_at_s
        # Every lane deals as if alone; what is left over must not meet in the first task.
        return (dealt.routes + self.lane) % self.route.partitions


def sketch_as_json(sketch: CostSketch) -> Document:
    """The cells of a sketch that have seen anything."""
    cells = np.flatnonzero(sketch.occurrences)
    return {
        "cells": cells.tolist(),
        "occurrences": sketch.occurrences[cells].tolist(),
        "seconds": sketch.seconds[cells].tolist(),
    }


def sketch_of(content: Document) -> CostSketch:
    """The sketch that `sketch_as_json` wrote; an empty one if it is damaged."""
    occurrences, seconds = SHAPE.empty(), SHAPE.empty()
    try:
        cells = np.array(content["cells"], dtype=np.int64)
        occurrences[cells] = content["occurrences"]
        seconds[cells] = content["seconds"]
    except (KeyError, ValueError, IndexError, TypeError):
        return empty_cost_sketch(SHAPE)
    return CostSketch(SHAPE, occurrences, seconds)
