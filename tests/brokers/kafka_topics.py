"""Topics of a test's broker: made, written, grown, emptied, deleted."""

import time
from collections.abc import Sequence
from itertools import count

from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic

LIMIT_S = 60.0


class Topics:
    """What the owner of topics does to them."""

    def __init__(self, servers: str) -> None:
        # Without it librdkafka tells stderr of every broker that a test has killed.
        self._settings = {"bootstrap.servers": servers, "log_level": 0}
        self._admin = AdminClient(self._settings)
        self._producer = Producer({**self._settings, "linger.ms": 5})
        self._transactions = count()
        self._made: set[str] = set()

    def create(self, topic: str, partitions: int) -> None:
        for done in self._admin.create_topics([NewTopic(topic, partitions, 1)]).values():
            done.result(LIMIT_S)
        self._made.add(topic)
        self._await_partitions(topic, partitions)

    def grow(self, topic: str, partitions: int) -> None:
        for done in self._admin.create_partitions([NewPartitions(topic, partitions)]).values():
            done.result(LIMIT_S)
        self._await_partitions(topic, partitions)

    def _await_partitions(self, topic: str, partitions: int) -> None:
        """A topic that was made is not known to every request at once."""
        deadline = time.monotonic() + LIMIT_S
        while True:
            known = self._admin.list_topics(timeout=LIMIT_S).topics.get(topic)
            if known is not None and len(known.partitions) == partitions:
                return
            assert time.monotonic() < deadline, f"{topic} is not there in time"

    def delete(self, topic: str) -> None:
        for done in self._admin.delete_topics([topic]).values():
            done.result(LIMIT_S)
        self._made.discard(topic)

    def delete_all(self) -> None:
        for topic in list(self._made):
            self.delete(topic)

    def produce(self, topic: str, partition: int, values: Sequence[bytes | None]) -> None:
        for value in values:
            self._producer.produce(topic, value, partition=partition)
        assert self._producer.flush(LIMIT_S) == 0

    def transact(
        self, topic: str, partition: int, values: Sequence[bytes], *, commit: bool
    ) -> None:
        name = f"test-{next(self._transactions)}"
        producer = Producer({**self._settings, "transactional.id": name})
        producer.init_transactions(LIMIT_S)
        producer.begin_transaction()
        for value in values:
            producer.produce(topic, value, partition=partition)
        producer.flush(LIMIT_S)
        if commit:
            producer.commit_transaction(LIMIT_S)
        else:
            producer.abort_transaction(LIMIT_S)

    def remove_before(self, topic: str, partition: int, offset: int) -> None:
        """What retention does, at once."""
        place = TopicPartition(topic, partition, offset)
        for done in self._admin.delete_records([place]).values():
            done.result(LIMIT_S)
