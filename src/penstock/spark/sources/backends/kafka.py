"""Kafka: every partition of the topics is a stream, `topic/partition`; offsets are its positions.

The major number of a position is taken from the topic's id, so that a topic that was deleted and
made anew is not mistaken for the one that was read.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

import numpy as np
import pyarrow as pa
from confluent_kafka import (
    ConsumerGroupTopicPartitions,
    IsolationLevel,
    KafkaError,
    KafkaException,
    TopicCollection,
)
from confluent_kafka import TopicPartition as Partition
from confluent_kafka.admin import OffsetSpec

from penstock.errors import InvalidInput, Unavailable
from penstock.model.observation import Ints
from penstock.spark.sources.backends.backend import (
    Advance,
    Backend,
    Chunk,
    Discovered,
    Latest,
    Positions,
    Ranges,
)
from penstock.spark.sources.backends.kafka_clients import KafkaPlace, admin, reachable, sentence
from penstock.spark.sources.backends.kafka_reading import read_ranges
from penstock.spark.sources.backends.payloads import PayloadForm, group_of, start_and_lost

WILDCARDS = "*?["
MISSING = -1


@dataclass(frozen=True)
class _Reach:
    """What the brokers say of each partition; MISSING where there is none."""

    topic_id: Ints
    low: Ints
    high: Ints


class KafkaBackend(Backend):
    """Partitions of one cluster."""

    def __init__(
        self, place: KafkaPlace, topics: Sequence[str], form: PayloadForm, start: str, lost: str,
        group: str | None = None,
    ) -> None:  # fmt: skip
        self._place, self._topics, self._form = place, topics, form
        self._start, self._lost, self._group = start, lost, group
        self._away = False

    @classmethod
    def from_options(cls, options: Mapping[str, Any]) -> "KafkaBackend":
        """`servers`, `topics`; `start`, `lost`, `group`, `isolation`, `client`; and the values."""
        topics = options.get("topics", ())
        if isinstance(topics, str) or not topics or not all(isinstance(t, str) for t in topics):
            raise InvalidInput(f"topics is {topics!r}; give a list of at least one topic.")
        form = PayloadForm.from_options(options)
        place, group = KafkaPlace.from_options(options), group_of(options)
        return cls(place, list(topics), form, *start_and_lost(options), group)

    def check(self, schema: pa.Schema) -> None:
        self._form.check(schema)

    def discover(self) -> Sequence[Discovered]:
        """The partitions of topics that are named or fit a pattern."""
        with self._asking():
            known = admin(self._place).list_topics(timeout=self._place.timeout_s).topics
        names = [
            f"{topic}/{partition}"
            for topic in sorted(known)
            if known[topic].error is None and self._wanted(topic)
            for partition in sorted(known[topic].partitions)
        ]
        return [Discovered(name) for name in names]

    def nothing_there(self) -> str | None:
        """Whether any topic is one of those named or fits a pattern."""
        self._away = True  # whoever starts a run is not to wait for librdkafka's time-out
        if self.discover():
            return None
        wanted = ", ".join(map(repr, self._topics))
        return f"Kafka at {self._place.servers} has no topic yet that is or fits {wanted}"

    @contextmanager
    def _asking(self) -> Iterator[None]:
        """Brokers that were away are knocked at first, so that other sources need not wait."""
        if self._away and not reachable(self._place):
            raise Unavailable(
                f"Kafka at {self._place.servers} cannot be reached: nothing is listening"
            )
        self._away = True
        with sentence(self._place):
            yield
        self._away = False

    def _wanted(self, topic: str) -> bool:
        if topic in self._topics:
            return True
        # What Kafka keeps for itself begins with two underscores: no pattern is meant to fit it.
        return not topic.startswith("__") and any(
            fnmatchcase(topic, pattern)
            for pattern in self._topics
            if any(sign in pattern for sign in WILDCARDS)
        )

    def first(self, streams: Sequence[str]) -> Positions:
        """The oldest record there is, or the place after the newest."""
        reach = self._reach(streams)
        there = reach.low != MISSING
        offset = reach.high if self._start == "now" else reach.low
        return Positions(np.where(there, reach.topic_id, 0), np.where(there, offset, 0))

    def latest(self, streams: Sequence[str], since: Positions, whole: bool = False) -> Latest:
        """How far each partition reaches; transactions count when they are over."""
        reach = self._reach(streams)
        faults = self._faults(reach, since)
        sound = np.array([not fault for fault in faults], dtype=bool) & (reach.low != MISSING)
        at = np.maximum(since.minor, reach.low)
        rows = np.where(sound, np.maximum(reach.high - at, 0), 0)
        end = Positions(
            np.where(sound, reach.topic_id, since.major),
            np.where(rows > 0, reach.high, since.minor),
        )
        return Latest.of(end, rows, faults)

    def _faults(self, reach: _Reach, since: Positions) -> list[str]:
        anew = (since.major != 0) & (reach.topic_id != since.major)
        back = reach.high < since.minor
        lost = since.minor < reach.low
        missing = reach.low == MISSING
        faults = [""] * len(since)
        for row in np.flatnonzero(missing | anew | back | lost).tolist():
            at = since.minor[row]
            if missing[row]:
                # A partition that was declared before it was made is not at fault.
                faults[row] = "its topic or partition is gone" if since.major[row] else ""
            elif anew[row]:
                faults[row] = "its topic was deleted and made anew"
            elif back[row]:
                faults[row] = f"it went back: it ends at {reach.high[row]} and was read up to {at}"
            elif self._lost == "suspend":
                faults[row] = f"offsets {at} to {reach.low[row] - 1} were removed before being read"
        return faults

    def advance(
        self, streams: Sequence[str], start: Positions, latest: Positions, rows: Ints
    ) -> Advance:
        """Offsets count records, but for those that compaction and transactions leave out."""
        since = start.minor
        if self._lost == "skip":
            since = np.maximum(since, self._reach(streams).low)
        end = np.minimum(since + np.maximum(rows, 1), latest.minor)
        return Advance.of(Positions(latest.major, end), np.maximum(end - since, 0))

    def read(self, ranges: Ranges, schema: pa.Schema) -> Iterator[Chunk]:
        return read_ranges(self._place, self._form, ranges, schema)

    def committed(self, streams: Sequence[str], upto: Positions) -> None:
        """Set the offsets of the group, which nobody joins; it is made where there is none."""
        if self._group is None or not streams:
            return
        offsets = [
            Partition(part.topic, part.partition, offset)
            for part, offset in zip(map(partition_of, streams), upto.minor.tolist(), strict=True)
        ]
        with self._asking():
            altered = admin(self._place).alter_consumer_group_offsets(
                [ConsumerGroupTopicPartitions(self._group, offsets)],
                request_timeout=self._place.timeout_s,
            )
            done = altered[self._group].result(2 * self._place.timeout_s)
            for partition in done.topic_partitions:
                if partition.error is not None:
                    raise KafkaException(partition.error)

    def _reach(self, streams: Sequence[str]) -> _Reach:
        partitions = [partition_of(name) for name in streams]
        ids = self._topic_ids({partition.topic for partition in partitions})
        topic_id = np.array([ids.get(p.topic, MISSING) for p in partitions], dtype=np.int64)
        there = [p for p in partitions if p.topic in ids]
        low, high = (self._offsets(there, spec) for spec in (_EARLIEST, _LATEST))
        columns = [
            np.array([found.get((p.topic, p.partition), MISSING) for p in partitions])
            for found in (low, high)
        ]
        return _Reach(topic_id, columns[0], columns[1])

    def _topic_ids(self, topics: set[str]) -> dict[str, int]:
        if not topics:
            return {}
        with self._asking():
            answers = admin(self._place).describe_topics(
                TopicCollection(sorted(topics)), request_timeout=self._place.timeout_s
            )
            found = {}
            for topic, answer in answers.items():
                try:
                    uuid = answer.result(2 * self._place.timeout_s).topic_id
                except KafkaException as error:
                    if error.args[0].code() != KafkaError.UNKNOWN_TOPIC_OR_PART:
                        raise
                    continue
                # Never 0, which stands for a topic that was not there yet.
                found[topic] = uuid.get_most_significant_bits() & (2**63 - 1) or 1
        return found

    def _offsets(
        self, partitions: Sequence[Partition], spec: OffsetSpec
    ) -> dict[tuple[str, int], int]:
        if not partitions:
            return {}
        committed = self._place.isolation == "read_committed"
        level = IsolationLevel.READ_COMMITTED if committed else IsolationLevel.READ_UNCOMMITTED
        with self._asking():
            answers = admin(self._place).list_offsets(
                dict.fromkeys(partitions, spec), isolation_level=level,
                request_timeout=self._place.timeout_s,
            )  # fmt: skip
            found = {}
            for partition, answer in answers.items():
                try:
                    offset = answer.result(2 * self._place.timeout_s).offset
                except KafkaException as error:
                    if error.args[0].code() not in _NOT_THERE:
                        raise
                    continue
                found[partition.topic, partition.partition] = offset
        return found


def partition_of(stream: str) -> Partition:
    """The partition of that name; a name that is none belongs to a topic that is never there."""
    topic, _, number = stream.rpartition("/")
    return Partition(topic, int(number)) if topic and number.isdigit() else Partition("?", 0)


_EARLIEST, _LATEST = OffsetSpec.earliest(), OffsetSpec.latest()
_NOT_THERE = (KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_PARTITION)
