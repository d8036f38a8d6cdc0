"""The records of ranges of many partitions by one consumer, on an executor.

A range is done when a record at or behind its end is seen, or the partition ends there: behind the
last record there may be only marks of transactions, which are never handed out.
"""

import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
from confluent_kafka import Consumer, KafkaError, KafkaException
from confluent_kafka import TopicPartition as Partition

from penstock.errors import Unavailable
from penstock.spark.sources.backends.backend import Chunk, Malformed, Ranges
from penstock.spark.sources.backends.kafka_clients import (
    KafkaPlace,
    consumer,
    drop_consumer,
    sentence,
)
from penstock.spark.sources.backends.patience import Patience
from penstock.spark.sources.backends.payloads import PayloadForm, Records

RECORDS_PER_CHUNK = 20_000
POLL_S = 0.2


class _Progress:
    """Where each range stands: the next offset to take, and those that are not done."""

    def __init__(self, ranges: Ranges) -> None:
        self.next = ranges.start.minor.tolist()
        self.end = ranges.end.minor.tolist()
        self.row: dict[tuple[str, int], int] = {}
        for row, name in enumerate(ranges.streams):
            topic, _, number = name.rpartition("/")
            if self.next[row] < self.end[row]:
                self.row[topic, int(number)] = row

    @property
    def left(self) -> int:
        """Records that may still come: to ask for more would be to wait for them."""
        return sum(self.end[row] - self.next[row] for row in self.row.values())

    def assignment(self) -> list[Partition]:
        """What is left, from where."""
        return [Partition(*place, self.next[row]) for place, row in self.row.items()]

    def reached(self, place: tuple[str, int], offset: int, reader: Consumer) -> None:
        """All before the offset was seen."""
        row = self.row[place]
        self.next[row] = max(self.next[row], offset)
        if self.next[row] >= self.end[row]:
            del self.row[place]
            reader.incremental_unassign([Partition(*place)])


def read_ranges(
    place: KafkaPlace, form: PayloadForm, ranges: Ranges, schema: pa.Schema
) -> Iterator[Chunk]:
    """Chunks as the consumer gets them."""
    progress = _Progress(ranges)
    patience = Patience()
    assigned = False
    while progress.row:
        try:
            reader = consumer(place)
            with sentence(place):
                if not assigned:
                    reader.assign(progress.assignment())
                    assigned = True
                messages = reader.consume(min(progress.left, RECORDS_PER_CHUNK), POLL_S)
            taken, lost = _taken(messages, progress, ranges, reader, place)
            if not messages:
                _still_there(place, patience)
        except Unavailable as away:
            drop_consumer(place)
            assigned = False
            time.sleep(patience.next_s(away))
            continue
        if taken or lost:
            patience = Patience()
            yield _chunk(form, taken, lost, ranges, schema)
    if assigned:
        consumer(place).unassign()


def _taken(
    messages: list[Any], progress: _Progress, ranges: Ranges, reader: Consumer, place: KafkaPlace
) -> tuple[list[tuple[int, Any]], list[Malformed]]:
    """Records within their ranges with the row of each, and ranges whose beginning is gone."""
    taken: list[tuple[int, Any]] = []
    lost: list[Malformed] = []
    for message in messages:
        where = (message.topic(), message.partition())
        error = message.error()
        row = progress.row.get(where)
        if error is not None and error.code() == KafkaError._AUTO_OFFSET_RESET and row is not None:
            lost += _skip_to_first(where, row, progress, ranges, reader, place)
        elif error is not None and error.code() != KafkaError._PARTITION_EOF:
            if error.code() not in _PASSING:
                with sentence(place):
                    raise KafkaException(error)
        elif row is not None:
            offset = message.offset()
            if error is None and progress.next[row] <= offset < progress.end[row]:
                taken.append((row, message))
                offset += 1
            progress.reached(where, offset, reader)
    return taken, lost


# Reported while a broker restarts; the consumer goes on by itself when it is back.
_PASSING = (KafkaError._TRANSPORT, KafkaError._ALL_BROKERS_DOWN, KafkaError._TIMED_OUT)


def _skip_to_first(
    where: tuple[str, int], row: int, progress: _Progress, ranges: Ranges, reader: Consumer,
    place: KafkaPlace,
) -> list[Malformed]:  # fmt: skip
    """Go on with the first record there is; what is gone gets a letter."""
    with sentence(place):
        low, _ = reader.get_watermark_offsets(Partition(*where), place.timeout_s)
    since, end = progress.next[row], min(low, progress.end[row])
    if low <= since:
        raise Unavailable(f"Kafka at {place.servers} has not recovered {ranges.streams[row]} yet")
    progress.reached(where, end, reader)
    if where in progress.row:
        reader.incremental_unassign([Partition(*where)])
        reader.incremental_assign([Partition(*where, end)])
    reason = f"offsets {since} to {end - 1} were removed before they were read"
    return [Malformed(ranges.streams[row], str(since), reason, b"")]


def _still_there(place: KafkaPlace, patience: Patience) -> None:
    """Silence is an empty fetch or a broker that is away: only the latter tries patience."""
    with sentence(place):
        consumer(place).list_topics(timeout=place.timeout_s)
    patience.next_s(Unavailable(f"Kafka at {place.servers} returns no records for the ranges"))


def _chunk(
    form: PayloadForm, taken: list[tuple[int, Any]], lost: list[Malformed], ranges: Ranges,
    schema: pa.Schema,
) -> Chunk:  # fmt: skip
    rows = np.array([row for row, _ in taken], dtype=np.int64)
    # A consumer mixes partitions; within one it keeps the order, and so does a stable sort.
    order = np.argsort(rows, kind="stable")
    messages = [taken[number][1] for number in order.tolist()]
    stamps = np.array([message.timestamp()[1] for message in messages], dtype=np.int64)
    offsets = [str(message.offset()) for message in messages]
    values = [message.value() for message in messages]
    made = form.chunk(Records(values, rows[order], stamps, offsets), ranges.streams, schema)
    return Chunk(made.rows, made.ranges, made.counts, [*made.malformed, *lost])
