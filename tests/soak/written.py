"""Streams of files, Redis or Kafka with somebody who writes to them, for as long as a leg lasts."""

import json
import signal
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

from brokers import kafka_broker, redis_server
from brokers.writing import Writer


class Broker(Protocol):
    """A server that can be disturbed."""

    start: Callable[[], None]
    kill: Callable[[], None]
    signal: Callable[[signal.Signals], None]


class Writing(Writer):
    """The writer of a leg, and the server it writes to; None where that is the file system."""

    broker: Broker | None = None


def missing(form: str) -> str | None:
    """Why the streams of a form cannot be had here; None if they can."""
    return {"redis": redis_server.missing, "kafka": kafka_broker.missing}.get(form, lambda: None)()


@contextmanager
def writing(form: str, room: Path) -> Iterator[Writing]:
    """Begin to write; `streams.json` in the room says where the streams are."""
    folder = room / form
    folder.mkdir()
    with {"files": _files, "redis": _redis, "kafka": _kafka}[form](folder, room) as writer:
        try:
            yield writer
        finally:
            writer.stop()


@contextmanager
def _files(folder: Path, room: Path) -> Iterator[Writing]:
    def send(rows: Mapping[str, list[bytes]]) -> None:
        for name, values in rows.items():
            with (folder / name).open("ab") as file:
                file.write(b"".join(value + b"\n" for value in values))

    _say(room, files=str(folder), pattern="s*", format="json")
    yield Writing(room, str, send)


@contextmanager
def _redis(folder: Path, room: Path) -> Iterator[Writing]:
    with redis_server.redis_server(folder) as server:
        client = server.client()

        def send(rows: Mapping[str, list[bytes]]) -> None:
            pipeline = client.pipeline(transaction=False)
            for key, values in rows.items():
                for value in values:
                    pipeline.xadd(key, {"value": value})
            pipeline.execute()

        _say(room, redis=server.url, keys="s*")
        writer = Writing(room, str, send)
        writer.broker = server
        yield writer
        client.close()


@contextmanager
def _kafka(folder: Path, room: Path) -> Iterator[Writing]:
    from brokers.kafka_topics import Topics

    with kafka_broker.kafka_broker(folder) as server:
        topics, known = Topics(server.servers), set[str]()

        def send(rows: Mapping[str, list[bytes]]) -> None:
            for stream, values in rows.items():
                topic = stream.partition("/")[0]
                if topic not in known:
                    topics.create(topic, 1)
                    known.add(topic)
                topics.produce(topic, 0, values)

        _say(room, kafka=server.servers, topics=["s*"])
        writer = Writing(room, lambda name: f"{name}/0", send)
        writer.broker = server
        yield writer


def _say(room: Path, **where: object) -> None:
    (room / "streams.json").write_text(json.dumps(where), encoding="utf-8")
