"""Where Kafka is, and clients of it, one of each kind in a process."""

import os
import socket
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from confluent_kafka import Consumer, KafkaException
from confluent_kafka.admin import AdminClient

from penstock.errors import InvalidInput, Unavailable
from penstock.masking import carries_secret, is_secret_name, masked_url

TIMEOUT_S = 5.0
REACH_TIMEOUT_S = 1.0
ISOLATION = ("read_committed", "read_uncommitted")


@dataclass(frozen=True)
class KafkaPlace:
    """Brokers by their addresses, and settings of librdkafka; secrets are in the environment."""

    servers: str
    isolation: str = "read_committed"
    client: tuple[tuple[str, str], ...] = ()
    client_env: tuple[tuple[str, str], ...] = ()
    timeout_s: float = TIMEOUT_S

    @classmethod
    def from_options(cls, options: Mapping[str, Any]) -> "KafkaPlace":
        """From `servers`, `isolation`, `client`, `client_env` and `timeout_s`."""
        servers, isolation = options.get("servers"), options.get("isolation", "read_committed")
        if not isinstance(servers, str) or ":" not in servers:
            shown = masked_url(servers) if isinstance(servers, str) else servers
            raise InvalidInput(f"kafka is {shown!r}; it must be host:port[,host:port].")
        if "@" in servers or _secret_inside(servers):  # no address of a broker has an @
            raise InvalidInput(
                "kafka carries a user or password, which would be written beside the checkpoint; "
                "write host:port[,host:port], and name environment variables that hold them in "
                "options={'client_env': {'sasl.password': ...}} instead."
            )
        if isolation not in ISOLATION:
            raise InvalidInput(f"isolation is {isolation!r}; allowed: {', '.join(ISOLATION)}.")
        client = _texts(options.get("client", {}), "client")
        for name, value in client:
            if is_secret_name(name) or _secret_inside(value):
                raise InvalidInput(
                    f"client[{name!r}] is or carries a secret, which would be written beside the "
                    "checkpoint; name an environment variable that holds it in "
                    f"options={{'client_env': {{{name!r}: ...}}}} instead."
                )
        timeout_s = options.get("timeout_s", TIMEOUT_S)
        if not isinstance(timeout_s, int | float) or not 0 < timeout_s <= 600:
            raise InvalidInput(f"timeout_s is {timeout_s!r}; it must be above 0 and at most 600.")
        client_env = _texts(options.get("client_env", {}), "client_env")
        return cls(servers, isolation, client, client_env, float(timeout_s))

    def settings(self) -> dict[str, Any]:
        """What every client is made with."""
        secret = {}
        for name, variable in self.client_env:
            if variable not in os.environ:
                raise Unavailable(
                    f"the environment variable {variable!r}, which should hold {name!r} of Kafka, "
                    "is not set in this process."
                )
            secret[name] = os.environ[variable]
        # A broker that is away is our caller's to report: librdkafka would write to stderr.
        ours = {"bootstrap.servers": self.servers, "log_level": 0, "reconnect.backoff.max.ms": 1000}
        return {**ours, **dict(self.client), **secret}


def _secret_inside(addresses: str) -> bool:
    """Whether one of several addresses carries a secret; a password may have a comma in it."""
    return any(carries_secret(address) for address in (addresses, *addresses.split(",")))


def _texts(given: Any, name: str) -> tuple[tuple[str, str], ...]:
    if not isinstance(given, Mapping) or not all(
        isinstance(key, str) and isinstance(value, str | int | float)
        for key, value in given.items()
    ):
        raise InvalidInput(f"{name} is {type(given).__name__}; give a table of texts or numbers.")
    return tuple(sorted((key, str(value)) for key, value in given.items()))


_admins: dict[tuple[int, KafkaPlace], AdminClient] = {}
_consumers = threading.local()  # a consumer's assignment belongs to one reader


def admin(place: KafkaPlace) -> AdminClient:
    """The client of this process that asks about topics."""
    key = (os.getpid(), place)
    if key not in _admins:
        with sentence(place):
            _admins[key] = AdminClient(place.settings())
    return _admins[key]


def consumer(place: KafkaPlace) -> Consumer:
    """The consumer of this thread; it belongs to no group and commits nothing."""
    key = (os.getpid(), place)
    known: dict[tuple[int, KafkaPlace], Consumer] = _consumers.__dict__.setdefault("known", {})
    if key not in known:
        settings = {
            # Required by librdkafka and never used: partitions are assigned by hand.
            "group.id": "penstock",
            "enable.auto.commit": False,
            "enable.auto.offset.store": False,
            "auto.offset.reset": "error",
            "isolation.level": place.isolation,
            "enable.partition.eof": True,
            "fetch.wait.max.ms": 50,
            **place.settings(),
        }
        with sentence(place):
            known[key] = Consumer(settings)
    return known[key]


def drop_consumer(place: KafkaPlace) -> None:
    """Let go of this thread's consumer: what it had fetched is not to be seen again."""
    known = _consumers.__dict__.setdefault("known", {})
    found = known.pop((os.getpid(), place), None)
    if found is not None:
        found.close()


def reachable(place: KafkaPlace) -> bool:
    """Whether anybody listens at one of the addresses; librdkafka would wait for its time-out."""
    for address in place.servers.split(","):
        host, _, port = address.strip().rpartition(":")
        try:
            socket.create_connection((host.strip("[]"), int(port)), REACH_TIMEOUT_S).close()
        except (OSError, ValueError):
            continue
        return True
    return False


@contextmanager
def sentence(place: KafkaPlace) -> Iterator[None]:
    """What Kafka says, as a reason to wait."""
    try:
        yield
    except KafkaException as error:
        said = str(error.args[0].str() if error.args else error).strip()
        raise Unavailable(f"Kafka at {place.servers} cannot be reached: {said}") from error
