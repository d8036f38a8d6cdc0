"""The class of a backend by its kind, imported when first used: most runs need one client only."""

from collections.abc import Mapping
from importlib import import_module
from typing import Any

from penstock.errors import InvalidInput, Unavailable
from penstock.spark.sources.backends.backend import Backend

OURS = {
    "files": "penstock.spark.sources.backends.files:FilesBackend",
    "generators": "penstock.spark.sources.backends.generators:GeneratorsBackend",
    "redis": "penstock.spark.sources.backends.redis_streams:RedisBackend",
    "kafka": "penstock.spark.sources.backends.kafka:KafkaBackend",
}


def backend_class(kind: str) -> type[Backend]:
    """One of ours by its name, or a user's as package.module:Class."""
    module, colon, name = OURS.get(kind, kind).partition(":")
    if not colon:
        raise InvalidInput(
            f"backend is {kind!r}; allowed: {', '.join(OURS)} or package.module:Class."
        )
    try:
        found = getattr(import_module(module), name, None)
    except ImportError as error:
        if kind not in OURS:
            raise InvalidInput(
                f"backend {kind!r} cannot be imported: {error}; its module must be installed or on "
                "PYTHONPATH for the driver and the executors."
            ) from error
        raise Unavailable(
            f"backend {kind!r} needs the package {error.name or module!r}, which is not installed: "
            f"pip install 'penstock[{kind}]'."
        ) from error
    if not (isinstance(found, type) and issubclass(found, Backend)):
        raise InvalidInput(
            f"backend {kind!r} is not a class derived from penstock.sources.Backend."
        )
    return found


def make_backend(kind: str, options: Mapping[str, Any]) -> Backend:
    """A backend made from its options."""
    return backend_class(kind).from_options(options)
