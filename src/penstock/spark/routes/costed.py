"""An operator that reports what the values of a column cost it, for OSG to go by.

The rows of one value are handed over together, and the time until the function asks for more is
theirs. What the function waits for, input or whoever takes its output, is nobody's cost.
"""

import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa

from penstock.errors import InvalidInput
from penstock.model.observation import Floats, Ints
from penstock.routing.cost_sketch import empty_cost_sketch
from penstock.routing.hashing import Hashes, key_hashes
from penstock.spark.routes.by_cost import SHAPE, sketch_as_json
from penstock.spark.routes.exchange import RouteExchange
from penstock.spark.routes.method import PROPERTY

MapInArrow = Callable[[Iterator[pa.RecordBatch]], Iterable[pa.RecordBatch]]
MOST_VALUES = 256  # of an Arrow batch that are timed one by one; the others run untimed
CHEAP_S = 20e-6  # an operator that takes less for a row is not worth cutting batches for


class Costed:
    """A function for `mapInArrow` that reports to the route of a source.

    `by` is the column, or columns, that the source is routed by, as they are called here.
    """

    def __init__(self, function: MapInArrow, by: tuple[str, ...], source: str) -> None:
        self._function = function
        self._by = by
        self._source = source

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The function's output, whatever order of rows within an Arrow batch it depends on."""
        meter = _Meter()
        outputs = iter(self._function(self._fed(batches, meter)))
        while (batch := next(outputs, None)) is not None:
            value = meter.turn_to(None)
            yield batch
            meter.turn_to(value)
        meter.turn_to(None)
        self._report(meter)

    def _fed(self, batches: Iterator[pa.RecordBatch], meter: "_Meter") -> Iterator[pa.RecordBatch]:
        for batch in batches:
            if batch.num_rows == 0 or meter.is_cheap:
                yield batch
                continue
            hashes = self._hashes(batch)
            order, starts, sizes = _by_value(hashes)
            ordered = batch.take(pa.array(order))
            for start, size in zip(starts.tolist(), sizes.tolist(), strict=True):
                meter.turn_to((int(hashes[order[start]]), size))
                yield ordered.slice(start, size)
                meter.turn_to(None)
            rest = int(starts[-1] + sizes[-1])
            if rest < batch.num_rows:
                yield ordered.slice(rest)

    def _hashes(self, batch: pa.RecordBatch) -> Hashes:
        for name in self._by:
            if name not in batch.schema.names:
                raise InvalidInput(
                    f"costed(by) is {name!r}; columns: {', '.join(batch.schema.names)}."
                )
        return key_hashes(*(batch.column(name) for name in self._by))

    def _report(self, meter: "_Meter") -> None:
        from pyspark import TaskContext

        context = TaskContext.get()
        folder = context.getLocalProperty(PROPERTY) if context is not None else None
        if context is None or not folder or not meter.hashes:
            return
        hashes, seconds = meter.columns()
        sketch = empty_cost_sketch(SHAPE).learn(hashes, seconds)
        who = f"{context.partitionId()}-{context.taskAttemptId()}"
        exchange = RouteExchange(Path(folder) / self._source)
        if not exchange.path.is_dir():
            raise InvalidInput(
                f"costed(source) is {self._source!r}; there is no routed source of that name "
                f"({exchange.path} is not seen from here)."
            )
        exchange.report("costs", who, sketch_as_json(sketch))


def costed(function: MapInArrow, *, by: str | Iterable[str], source: str) -> Costed:
    """Wrap a function for `mapInArrow` so that the route of a source learns what values cost."""
    names = (by,) if isinstance(by, str) else tuple(by)
    if not names or not all(isinstance(name, str) for name in names):
        raise InvalidInput(f"costed(by) is {by!r}; name a column, or several.")
    if not callable(function):
        raise InvalidInput(f"costed(function) is {function!r}; give a function for mapInArrow.")
    return Costed(function, names, source)


class _Meter:
    """Seconds by value; a value may come again."""

    def __init__(self) -> None:
        self.hashes: list[int] = []
        self._rows: list[int] = []
        self._seconds: list[float] = []
        self._now: tuple[int, int] | None = None
        self._again: tuple[int, int] | None = None
        self._since_s = 0.0

    def turn_to(self, value: tuple[int, int] | None) -> tuple[int, int] | None:
        """Charge the present value (hash, rows) and go on with another, or with nobody."""
        now_s = time.perf_counter()
        before = self._now
        if before is not None:
            if self._again is not before:
                self.hashes.append(before[0])
                self._rows.append(before[1])
                self._seconds.append(0.0)
                self._again = before
            self._seconds[-1] += now_s - self._since_s
        self._now, self._since_s = value, now_s
        return before

    @property
    def is_cheap(self) -> bool:
        """Whether what was timed says that timing is not worth it."""
        rows = sum(self._rows)
        return rows >= MOST_VALUES and sum(self._seconds) < CHEAP_S * rows

    def columns(self) -> tuple[Hashes, Floats]:
        """For each row that was timed its value's hash and its share of the value's time."""
        rows = np.array(self._rows)
        hashes = np.repeat(np.array(self.hashes, dtype=np.uint64), rows)
        return hashes, np.repeat(np.array(self._seconds) / rows, rows)


def _by_value(hashes: Hashes) -> tuple[Ints, Ints, Ints]:
    """An order of rows in which those of a value stand together, and where each value stands.

    Of very many values the most frequent ones are reported; the rows of the others come last.
    """
    _, classes, counts = np.unique(hashes, return_inverse=True, return_counts=True)
    kept = np.argsort(-counts, kind="stable")[:MOST_VALUES]
    place = np.full(len(counts), len(kept))
    place[kept] = np.arange(len(kept))
    order = np.argsort(place[classes], kind="stable")
    sizes = counts[kept]
    return order, np.cumsum(sizes) - sizes, sizes
