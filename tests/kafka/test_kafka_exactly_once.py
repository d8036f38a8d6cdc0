"""Kafka under kill -9 of executor, source runner, broker and driver: `make test-kafka`."""

import json
import os
import random
from collections.abc import Mapping
from pathlib import Path

import pytest

from brokers import kafka_broker
from brokers.ordeal import survive
from brokers.writing import Writer

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("no_session")]


@pytest.mark.skipif(kafka_broker.missing() is not None, reason=str(kafka_broker.missing()))
def test_every_record_once_and_in_order(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    from brokers.kafka_topics import Topics

    seed = int(os.environ.get("PENSTOCK_TEST_SEED", random.randrange(2**32)))
    print(f"PENSTOCK_TEST_SEED={seed}")
    folder = tmp_path / "kafka"
    folder.mkdir()
    with kafka_broker.kafka_broker(folder) as broker:
        where = {"kafka": broker.servers, "topics": ["s*"]}
        (tmp_path / "streams.json").write_text(json.dumps(where))
        topics = Topics(broker.servers)
        known: set[str] = set()

        def send(rows: Mapping[str, list[bytes]]) -> None:
            for stream, values in rows.items():
                topic = stream.partition("/")[0]
                if topic not in known:
                    topics.create(topic, 1)
                    known.add(topic)
                topics.produce(topic, 0, values)

        def restart() -> None:
            broker.kill()
            broker.start()

        writer = Writer(tmp_path, lambda name: f"{name}/0", send)
        long = request.config.getoption("--long")
        try:
            survive(
                tmp_path, random.Random(seed), writer, restart, 5 if long else 1, executors=long
            )
        finally:
            writer.stop()
