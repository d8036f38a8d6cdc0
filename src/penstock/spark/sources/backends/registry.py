"""Backends by name, imported when first used: most runs need the client of one system only."""

from collections.abc import Mapping
from importlib import import_module
from typing import Any

from penstock.errors import InvalidInput, Unavailable
from penstock.spark.sources.backends.backend import Backend

BACKENDS = {
    "files": "penstock.spark.sources.backends.files:FilesBackend",
    "generators": "penstock.spark.sources.backends.generators:GeneratorsBackend",
    "redis": "penstock.spark.sources.backends.redis_streams:RedisBackend",
    "kafka": "penstock.spark.sources.backends.kafka:KafkaBackend",
}


def backend_class(kind: str) -> type[Backend]:
    """The class of that name, or a sentence with what is missing."""
    if kind not in BACKENDS:
        raise InvalidInput(f"backend is {kind!r}; allowed: {', '.join(BACKENDS)}.")
    module, _, name = BACKENDS[kind].partition(":")
    try:
        found: type[Backend] = getattr(import_module(module), name)
    except ImportError as error:
        raise Unavailable(
            f"backend {kind!r} needs the package {error.name or module!r}, which is not installed."
        ) from error
    return found


def make_backend(kind: str, options: Mapping[str, Any]) -> Backend:
    """A backend made from its options."""
    return backend_class(kind).from_options(options)
