"""The Kafka backend against a real broker: `make test-kafka`."""

import json
import threading
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from brokers import kafka_broker
from brokers.reading import Reader, read_all
from penstock.errors import InvalidInput, Unavailable
from penstock.sources import Backend, Positions, Ranges
from penstock.testing import BackendContract

if (reason := kafka_broker.missing()) is not None:
    pytest.skip(reason, allow_module_level=True)

from brokers.kafka_topics import Topics
from penstock.spark.sources.backends.kafka import KafkaBackend

SCHEMA = pa.schema([("seq", pa.int64())])
LIMIT_S = 60.0


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[kafka_broker.KafkaBroker]:
    with kafka_broker.kafka_broker(tmp_path_factory.mktemp("kafka")) as started:
        yield started


@pytest.fixture
def topics(broker: kafka_broker.KafkaBroker) -> Iterator[Topics]:
    made = Topics(broker.servers)
    yield made
    made.delete_all()


class TestContract(BackendContract):
    """What every backend has to keep."""

    streams = ("t/0", "t/1")

    @pytest.fixture(autouse=True)
    def _empty(self, broker: kafka_broker.KafkaBroker, topics: Topics) -> None:
        self.broker, self.topics = broker, topics
        self.written: dict[str, int] = {}
        topics.create("t", 2)

    def make(self) -> Backend:
        return backend(self.broker)

    def append(self, stream: str, count: int) -> None:
        first = self.written.get(stream, 0)
        self.topics.produce("t", int(stream.partition("/")[2]), values(first, count))
        self.written[stream] = first + count

    def schema(self) -> pa.Schema:
        return SCHEMA

    def numbers(self, rows: pa.RecordBatch) -> list[int]:
        found: list[int] = rows.column(0).to_pylist()
        return found


def backend(broker: kafka_broker.KafkaBroker, *names: str, **options: Any) -> KafkaBackend:
    given = {"servers": broker.servers, "topics": list(names) or ["t"], **options}
    return KafkaBackend.from_options(given)


def values(first: int, count: int) -> list[bytes]:
    return [json.dumps({"seq": seq}).encode() for seq in range(first, first + count)]


def test_brokers_without_a_topic_that_fits_say_so(
    broker: kafka_broker.KafkaBroker, topics: Topics
) -> None:
    said = backend(broker, "tolls", "fines-*").nothing_there()
    assert said == f"Kafka at {broker.servers} has no topic yet that is or fits 'tolls', 'fines-*'"
    topics.create("fines-a", 1)
    assert backend(broker, "tolls", "fines-*").nothing_there() is None


def test_ranges_of_any_size_give_every_record_once_and_in_order(
    broker: kafka_broker.KafkaBroker, topics: Topics
) -> None:
    topics.create("t", 4)
    rng = np.random.default_rng(4)
    counts = [0] * 4
    reader = Reader(backend(broker), SCHEMA)
    for _ in range(6):
        for partition in range(4):
            more = int(rng.integers(0, 9))
            topics.produce("t", partition, values(counts[partition], more))
            counts[partition] += more
        reader.step(rng)
    reader.drain()
    assert dict(reader.seqs) == {f"t/{p}": list(range(n)) for p, n in enumerate(counts)}


def test_topics_by_pattern_and_new_partitions(
    broker: kafka_broker.KafkaBroker, topics: Topics
) -> None:
    topics.create("clicks-eu", 1)
    topics.create("clicks-us", 2)
    topics.create("other", 1)
    made = backend(broker, "clicks-*")
    assert [s.name for s in made.discover()] == ["clicks-eu/0", "clicks-us/0", "clicks-us/1"]
    topics.grow("clicks-eu", 2)
    _await(lambda: "clicks-eu/1" in [stream.name for stream in made.discover()])


def test_only_committed_records_are_read(broker: kafka_broker.KafkaBroker, topics: Topics) -> None:
    topics.create("t", 1)
    topics.transact("t", 0, values(0, 3), commit=True)
    topics.transact("t", 0, values(90, 3), commit=False)
    topics.transact("t", 0, values(3, 2), commit=True)
    reader = Reader(backend(broker), SCHEMA)
    reader.drain()
    assert reader.seqs["t/0"] == [0, 1, 2, 3, 4]
    # The marks of transactions are counted as waiting, but a range of them is read to its end.
    topics.transact("t", 0, values(99, 1), commit=False)
    reader.drain()
    assert reader.seqs["t/0"] == [0, 1, 2, 3, 4]
    assert reader.look().waiting_rows.tolist() == [0]


def test_records_removed_unread_suspend_the_stream_or_become_a_letter(
    broker: kafka_broker.KafkaBroker, topics: Topics
) -> None:
    topics.create("t", 1)
    topics.produce("t", 0, values(0, 10))
    strict, lenient = Reader(backend(broker), SCHEMA), Reader(backend(broker, lost="skip"), SCHEMA)
    for reader in (strict, lenient):
        reader.take({"t/0": 4})
    topics.remove_before("t", 0, 7)
    assert strict.look().fault == ["offsets 4 to 6 were removed before being read"]
    assert lenient.look().fault == [""]
    lenient.drain()
    assert lenient.seqs["t/0"] == [0, 1, 2, 3, 7, 8, 9]
    assert [letter.reason for letter in lenient.malformed] == [
        "offsets 4 to 6 were removed before they were read"
    ]


def test_a_topic_that_vanishes_or_is_made_anew_is_at_fault(
    broker: kafka_broker.KafkaBroker, topics: Topics
) -> None:
    topics.create("t", 1)
    topics.create("u", 1)
    for topic in ("t", "u"):
        topics.produce(topic, 0, values(0, 2))
    reader = Reader(backend(broker, "t", "u"), SCHEMA)
    reader.drain()
    topics.delete("t")
    _await(lambda: reader.look().fault == ["its topic or partition is gone", ""])
    topics.create("t", 1)
    topics.produce("t", 0, values(0, 9))
    _await(lambda: reader.look().fault == ["its topic was deleted and made anew", ""])


def test_what_is_malformed_is_set_apart_with_its_bytes(
    broker: kafka_broker.KafkaBroker, topics: Topics
) -> None:
    topics.create("t", 1)
    topics.produce("t", 0, [b'{"seq": 1}', b"{not json", None, b'{"seq": 2}'])
    schema = pa.schema(
        [("seq", pa.int64()), ("offset", pa.string()), ("at", pa.timestamp("us", "UTC"))]
    )
    made = backend(broker, offset_column="offset", timestamp_column="at")
    start = made.first(["t/0"])
    ranges = Ranges(["t/0"], start, made.latest(["t/0"], start).end, np.array([4]))
    rows, letters = read_all(made, ranges, schema)
    assert [(row["seq"], row["offset"]) for row in rows["t/0"]] == [(1, "0"), (2, "3")]
    assert all(abs(row["at"].timestamp() - time.time()) < 600 for row in rows["t/0"])
    assert [(letter.offset, letter.raw) for letter in letters] == [("1", b"{not json"), ("2", b"")]


def test_a_broker_that_restarts_is_waited_for(
    broker: kafka_broker.KafkaBroker, topics: Topics
) -> None:
    topics.create("t", 1)
    topics.produce("t", 0, values(0, 5))
    reader = Reader(backend(broker, timeout_s=2), SCHEMA)
    reader.take({"t/0": 2})
    reader.admit({"t/0": 2})
    broker.kill()
    with pytest.raises(Unavailable, match="cannot be reached"):
        reader.look()
    with pytest.raises(Unavailable, match="nothing is listening"):
        reader.look()
    restart = threading.Timer(0.5, broker.start)
    restart.start()
    reader.read_on()
    restart.join()
    reader.drain()
    assert reader.seqs["t/0"] == [0, 1, 2, 3, 4]


def test_a_group_is_told_what_is_committed_and_never_asked(
    broker: kafka_broker.KafkaBroker, topics: Topics
) -> None:
    topics.create("t", 2)
    topics.produce("t", 0, values(0, 7))
    topics.produce("t", 1, values(0, 2))
    made = backend(broker, group="road")
    streams = ["t/0", "t/1"]
    start = made.first(streams)
    latest = made.latest(streams, start)
    some = made.advance(streams, start, latest.end, np.array([3, 2]))
    _await(lambda: tells(made, streams, some.end))  # a broker's first group takes a while
    assert told(broker, "road") == {("t", 0): 3, ("t", 1): 2}
    made.committed(["t/0"], latest.end.take(np.array([0])))
    assert told(broker, "road") == {("t", 0): 7, ("t", 1): 2}
    assert backend(broker, group="road").first(streams).minor.tolist() == [0, 0]
    backend(broker).committed(["t/1"], start.take(np.array([1])))
    assert told(broker, "road")["t", 1] == 2, "without a group nothing is written"


def tells(made: KafkaBackend, streams: list[str], upto: Positions) -> bool:
    try:
        made.committed(streams, upto)
    except Unavailable:
        return False
    return True


def told(broker: kafka_broker.KafkaBroker, group: str) -> dict[tuple[str, int], int]:
    """The offsets of a group, as consumers outside see them."""
    from confluent_kafka import Consumer, TopicPartition

    consumer = Consumer({"bootstrap.servers": broker.servers, "group.id": group})
    try:
        wanted = [TopicPartition("t", 0), TopicPartition("t", 1)]
        found = consumer.committed(wanted, timeout=LIMIT_S)
        return {(one.topic, one.partition): one.offset for one in found}
    finally:
        consumer.close()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"servers": "x"}, "kafka is 'x'"),
        ({"group": 7}, "group is 7; it must be the name of a consumer group"),
        ({"topics": "t"}, "topics is 't'"),
        ({"isolation": "none"}, "allowed: read_committed, read_uncommitted"),
        ({"client": {"sasl.password": "x"}}, "client_env"),
        ({"format": "arrow"}, "allowed for brokers: json, csv, raw"),
        ({"lost": "drop"}, "lost is 'drop'"),
    ],
)
def test_bad_options_are_refused(options: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidInput, match=said):
        KafkaBackend.from_options({"servers": "127.0.0.1:9092", "topics": ["t"], **options})


def _await(holds: Any) -> None:
    deadline = time.monotonic() + LIMIT_S
    while not holds():
        assert time.monotonic() < deadline, "the broker does not say so in time"
        time.sleep(0.05)
