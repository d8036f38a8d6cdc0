"""OSG: operators tell what values cost, and lanes deal the rows of a batch by it."""

from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from penstock.model.observation import Floats, Ints
from penstock.model.route import Route
from penstock.routing.cost_sketch import CostSketch, empty_cost_sketch
from penstock.routing.osg_batch import osg_batch_routes
from penstock.spark.routes.exchange import Document
from penstock.spark.routes.fixed import batch_hashes
from penstock.spark.routes.method import LaneMethod, NextTable


class ByCost:
    """Each row to the task that will be free first, costly rows first; a batch begins idle."""

    kind = "costs"
    every_batch = False

    def first(self, route: Route) -> Document:
        """No costs: rows count alike."""
        return sketch_as_json(empty_cost_sketch())

    def next(self, route: Route, content: Document, reports: list[Document]) -> NextTable:
        """What was known and what was learnt since."""
        if not reports:
            return NextTable(content)
        sketch = sketch_of(content)
        for report in reports:
            sketch = sketch.merge(sketch_of(report))
        rows = float(sketch.occurrences[: sketch.shape.columns].sum())
        mean_ms = 1e3 * sketch.mean_s
        reason = f"costs of {rows:.0f} rows known, {mean_ms:.3g} ms a row on average"
        return NextTable(sketch_as_json(sketch), (reason,))

    def lane(self, route: Route, content: Document, lane: int) -> LaneMethod:
        """By the estimates, over all rows of the lane's batch."""
        return _Dealt(route, sketch_of(content), lane, np.zeros(route.partitions))


@dataclass
class _Dealt:
    route: Route
    sketch: CostSketch
    lane: int
    free_s: Floats = field(repr=False)

    def routes(self, batch: pa.RecordBatch) -> Ints:
        dealt = osg_batch_routes(batch_hashes(batch, self.route), self.sketch, self.free_s)
        self.free_s = dealt.free_at_s
        # Every lane deals as if alone; what is left over must not meet in the first task.
        return (dealt.routes + self.lane) % self.route.partitions

    def report(self) -> None:
        return None


def sketch_as_json(sketch: CostSketch) -> Document:
    """The tables of a sketch of the usual shape."""
    return {"occurrences": sketch.occurrences.tolist(), "seconds": sketch.seconds.tolist()}


def sketch_of(content: Document) -> CostSketch:
    """The sketch that `sketch_as_json` wrote; an empty one if it is not one of that shape."""
    empty = empty_cost_sketch()
    occurrences = np.array(content.get("occurrences", ()), dtype=np.float64)
    seconds = np.array(content.get("seconds", ()), dtype=np.float64)
    if not len(occurrences) == len(seconds) == len(empty.occurrences):
        return empty
    return CostSketch(empty.shape, occurrences, seconds)
