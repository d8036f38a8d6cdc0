"""Where a Redis server is, and one connection to it in each process."""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from penstock.errors import InvalidInput, Unavailable
from penstock.masking import carries_secret, masked_url

SCHEMES = ("redis", "rediss", "unix")
TIMEOUT_S = 5.0


@dataclass(frozen=True)
class RedisPlace:
    """A server by its URL; its password, if any, is in an environment variable."""

    url: str
    password_env: str | None = None
    timeout_s: float = TIMEOUT_S

    @classmethod
    def from_options(cls, options: Mapping[str, Any]) -> "RedisPlace":
        """From `url`, `password_env` and `timeout_s`."""
        url, password_env = options.get("url"), options.get("password_env")
        if not isinstance(url, str) or urlsplit(url).scheme not in SCHEMES:
            shown = masked_url(url) if isinstance(url, str) else url
            raise InvalidInput(
                f"redis is {shown!r}; it must be a URL such as redis://127.0.0.1:6379/0 "
                f"(allowed: {', '.join(SCHEMES)})."
            )
        if carries_secret(url):
            raise InvalidInput(
                "redis carries a password, which would be written beside the checkpoint; name an "
                "environment variable that holds it in options={'password_env': ...} instead."
            )
        if password_env is not None and not isinstance(password_env, str):
            raise InvalidInput(
                f"password_env is {password_env!r}; it must be the name of a variable."
            )
        timeout_s = options.get("timeout_s", TIMEOUT_S)
        if not isinstance(timeout_s, int | float) or not 0 < timeout_s <= 600:
            raise InvalidInput(f"timeout_s is {timeout_s!r}; it must be above 0 and at most 600.")
        return cls(url, password_env, float(timeout_s))


_connections: dict[tuple[int, RedisPlace], Any] = {}


def connect(place: RedisPlace) -> Any:
    """The client of this process; workers are forked, and a connection must not be shared."""
    key = (os.getpid(), place)
    if key not in _connections:
        password = None if place.password_env is None else os.environ.get(place.password_env)
        if place.password_env is not None and password is None:
            raise Unavailable(
                f"the environment variable {place.password_env!r}, which should hold the password "
                "of Redis, is not set in this process."
            )
        client = redis.Redis.from_url(
            place.url, password=password, socket_timeout=place.timeout_s,
            socket_connect_timeout=place.timeout_s, retry=Retry(NoBackoff(), 0), protocol=2,
        )  # fmt: skip
        # Entries stay lists of bytes: a dict for each would double the time of a read.
        for command in ("XRANGE", "EVAL_RO"):
            client.response_callbacks.pop(command, None)
        _connections[key] = client
    return _connections[key]


@contextmanager
def sentence(place: RedisPlace) -> Iterator[None]:
    """What Redis says, as a reason to wait."""
    try:
        yield
    except redis.RedisError as error:
        said = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise Unavailable(f"Redis at {masked_url(place.url)} cannot be reached: {said}") from error
