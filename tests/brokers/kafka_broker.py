"""A Kafka broker of our own on loopback in KRaft mode, for as long as a test needs it."""

import os
import shutil
import subprocess
import uuid
from base64 import urlsafe_b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from .free_port import free_port
from .server_process import ServerProcess

JARS = "PENSTOCK_KAFKA_JARS"
SETTINGS = """\
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}
advertised.listeners=PLAINTEXT://127.0.0.1:{port}
controller.listener.names=CONTROLLER
log.dirs={folder}/data
auto.create.topics.enable=false
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
transaction.state.log.num.partitions=1
group.initial.rebalance.delay.ms=0
broker.session.timeout.ms=3000
broker.heartbeat.interval.ms=500
"""


def missing() -> str | None:
    """Why no broker can be started here; None if one can."""
    if not os.environ.get(JARS):
        return f"{JARS} names no folder with a broker's jars; `make test-kafka` fetches them"
    if shutil.which("java") is None:
        return "java is not on the path"
    try:
        import confluent_kafka  # noqa: F401
    except ImportError:
        return "confluent-kafka is not installed"
    return None


class KafkaBroker:
    """The broker; its data outlive a kill."""

    def __init__(self, folder: Path) -> None:
        port = free_port()
        self.servers = f"127.0.0.1:{port}"
        settings = folder / "server.properties"
        settings.write_text(SETTINGS.format(port=port, controller=free_port(), folder=folder))
        java = ["java", "-Xmx384m", "-XX:+UseSerialGC", "-cp", f"{os.environ[JARS]}/*"]
        cluster = urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        format_storage = ["kafka.tools.StorageTool", "format", "-t", cluster, "-c", str(settings)]
        subprocess.run([*java, *format_storage], check=True, capture_output=True, timeout=60)
        command = [*java, "kafka.Kafka", str(settings)]
        self._process = ServerProcess(command, folder, self._answers)
        self.start, self.kill = self._process.start, self._process.kill
        self.signal = self._process.signal

    def _answers(self) -> bool:
        from confluent_kafka import KafkaException
        from confluent_kafka.admin import AdminClient

        try:
            # Without a logger of its own librdkafka tells stderr about each refused connection.
            client = AdminClient({"bootstrap.servers": self.servers, "log_level": 0})
            return len(client.list_topics(timeout=1.0).brokers) == 1
        except KafkaException:
            return False


@contextmanager
def kafka_broker(folder: Path) -> Iterator[KafkaBroker]:
    """A fresh broker without topics; it ends with the block."""
    broker = KafkaBroker(folder)
    broker.start()
    try:
        yield broker
    finally:
        broker.kill()
