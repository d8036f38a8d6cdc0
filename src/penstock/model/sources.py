"""Many streams as one source of a topology. This is data; spark/ reads it."""

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

from penstock.errors import InvalidTopology, documented
from penstock.masking import address_of
from penstock.model.durations import parse_duration_s

OVERLOAD_BY = ("either", "queue")
FORMATS = {  # a file holds many records, a broker's record is one value
    "files": ("json", "csv", "arrow"),
    "generators": ("json",),
    "redis": ("json", "csv", "raw"),
    "kafka": ("json", "csv", "raw"),
    "backend": ("json",),  # not passed to it: what it needs is in `options`
}
STRATEGIES = ("drf-m", "drf", "ard", "ari", "par")
FORECASTING = ("drf-m", "drf")
CAPACITY_BEFORE_MEASURED = 100_000.0  # rows per s of a lane
DEFAULT_BOUND_S = 5.0


@dataclass(frozen=True)
class Admission:
    """How streams are divided among lanes, and how much of them a batch takes.

    A lane is planned for `lane_capacity` rows a second, or as many as its tasks are measured to
    serve, and takes at most `lane_rows` rows of a batch; `max_rows` bounds the batch over all
    lanes. Every `period` the strategy decides anew; `drf-m` and `drf` foresee rates by the
    `forecaster` (holt unless another is named: last, or package.module:Class of one's own).
    """

    strategy: str = "drf-m"
    lane_capacity: float | None = None  # None: learnt from the lanes' tasks
    lane_rows: int = 500_000
    max_rows: int | None = None
    lanes_max: int = 16
    period: str | float = "5s"
    horizon: int = 2
    # A lane whose queue takes longer gives streams away; None: the topology's max_latency.
    latency_bound: str | float | None = None
    overload_by: str = "either"  # a lane is overloaded by load or "queue"; or by "queue" alone
    accept_below: float = 0.85  # share of its capacity to which a lane is filled
    forecaster: str | None = None
    drain_below: float | None = 0.6  # lanes are emptied when the rest is then at most so full

    def __post_init__(self) -> None:
        if self.strategy not in STRATEGIES:
            allowed = ", ".join(STRATEGIES)
            raise InvalidTopology(f"Admission(strategy) is {self.strategy!r}; allowed: {allowed}.")
        if self.overload_by not in OVERLOAD_BY:
            allowed = ", ".join(OVERLOAD_BY)
            raise InvalidTopology(
                f"Admission(overload_by) is {self.overload_by!r}; allowed: {allowed}."
            )
        for name, value, most in (
            ("lane_capacity", self.lane_capacity, 1e12), ("lane_rows", self.lane_rows, 2**40),
            ("max_rows", self.max_rows, 2**40), ("lanes_max", self.lanes_max, 10_000),
            ("horizon", self.horizon, 10_000),
        ):  # fmt: skip
            if value is not None and not 1 <= value <= most:
                raise InvalidTopology(
                    f"Admission({name}) is {value!r}; it must be from 1 to {most:g}."
                )
        if not 0 < self.accept_below <= 1:
            raise InvalidTopology(
                f"Admission(accept_below) is {self.accept_below!r}; it must be in (0, 1]."
            )
        if self.drain_below is not None and not 0 < self.drain_below <= 1:
            raise InvalidTopology(
                f"Admission(drain_below) is {self.drain_below!r}; it must be in (0, 1] or None."
            )
        parse_duration_s(self.period, "Admission(period)")
        if self.latency_bound is not None:
            parse_duration_s(self.latency_bound, "Admission(latency_bound)")
        if self.forecaster is not None and self.strategy not in FORECASTING:
            raise InvalidTopology(
                f"Admission(forecaster) is {self.forecaster!r}, but strategy {self.strategy!r} "
                f"forecasts nothing; choose {' or '.join(FORECASTING)}, or leave it out."
            )

    def to_dict(self, max_latency_s: float | None = None) -> dict[str, Any]:
        """As JSON, with durations in seconds; `max_latency_s` is the topology's."""
        bound = self.latency_bound or max_latency_s or DEFAULT_BOUND_S
        return {
            "strategy": self.strategy,
            "forecaster": self.forecaster,
            "lane_capacity_per_s": float(self.lane_capacity or CAPACITY_BEFORE_MEASURED),
            "lane_rows": self.lane_rows,
            "max_rows": self.max_rows,
            "lanes_max": self.lanes_max,
            "period_s": parse_duration_s(self.period, "Admission(period)"),
            "horizon": self.horizon,
            "latency_bound_s": parse_duration_s(bound, "Admission(latency_bound)"),
            "overload_by": self.overload_by,
            "accept_below": self.accept_below,
            "drain_below": self.drain_below,
        }


@dataclass(frozen=True)
class Streams:
    """Streams of one system, of which exactly one is named.

    files        a directory; every file in it whose name fits `pattern` is a stream that grows
    generators   generated streams by name
    redis        URL of a server; every key that fits `keys` and holds a stream is one
    kafka        host:port[,host:port]; every partition of `topics`, which may be patterns, is one
    backend      a class of one's own, itself or as "package.module:Class" (docs/your-own-source.md)

    `schema` is the columns as Spark DDL; `stream_column` adds one with the stream's name.
    `declared` is a TOML file of streams and their meta-data that is watched; with `discover` off,
    only streams that are declared there or added by the running program are read. `options` go to
    the backend as they are.
    """

    files: str | None = None
    generators: Mapping[str, Any] | None = None
    redis: str | None = None
    kafka: str | None = None
    backend: str | type[Any] | None = None
    format: str = "json"
    schema: str | None = None
    pattern: str = "*"
    keys: str = "*"
    topics: Sequence[str] = ()
    stream_column: str | None = None
    declared: str | None = None
    discover: bool = True
    discovery_period: str | float = "1s"
    dead_letters: str | None = None  # beside the checkpoint when not given
    dead_letter_age: str | float = "30d"  # older ones go, and the oldest beyond this size
    dead_letter_mb: int = 256
    departed_age: str | float = "30d"  # a stream that left so long ago is forgotten
    admission: Admission = field(default_factory=Admission)
    options: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        with documented("source"):
            self._check()

    def _check(self) -> None:
        named = [kind for kind in _KINDS if getattr(self, kind) is not None]
        if len(named) != 1:
            shown = ", ".join(named) or "none"
            raise InvalidTopology(
                f"Streams names {shown} of {', '.join(_KINDS)}; it must name exactly one."
            )
        if not getattr(self, named[0]):
            raise InvalidTopology(f"Streams({named[0]}) is empty; say where the streams are.")
        if self.backend is not None:
            import_path(self.backend)
        allowed = FORMATS[named[0]]
        if self.format not in allowed:
            raise InvalidTopology(
                f"Streams(format) is {self.format!r}; allowed for {named[0]}: {', '.join(allowed)}."
            )
        if self.kafka is not None and (isinstance(self.topics, str) or not self.topics):
            raise InvalidTopology(
                f"Streams(topics) is {self.topics!r}; give a list of at least one topic."
            )
        given = self.schema is not None and self.schema.strip()
        if self.generators is None and self.backend is None and not given:
            raise InvalidTopology(
                f"Streams(schema) is not given; name the columns of the {named[0]} source, as in "
                "schema='device STRING, value DOUBLE'."
            )
        parse_duration_s(self.discovery_period, "Streams(discovery_period)")
        parse_duration_s(self.dead_letter_age, "Streams(dead_letter_age)")
        parse_duration_s(self.departed_age, "Streams(departed_age)")
        most = self.dead_letter_mb
        if isinstance(most, bool) or not isinstance(most, int) or most < 1:
            raise InvalidTopology(
                f"Streams(dead_letter_mb) is {most!r}; it must be a whole number of at least 1."
            )

    @property
    def kind(self) -> str:
        """The system they are in; of a backend of one's own, where its class is."""
        if self.backend is not None:
            return import_path(self.backend)
        return next(kind for kind in _KINDS if getattr(self, kind) is not None)

    @property
    def backend_options(self) -> dict[str, Any]:
        """What the backend is made from, as JSON."""
        where: dict[str, dict[str, Any]] = {
            "files": {"directory": self.files, "format": self.format, "pattern": self.pattern},
            "generators": {"generators": _generators(self.generators)},
            "redis": {"url": self.redis, "format": self.format, "keys": self.keys},
            "kafka": {
                "servers": self.kafka, "format": self.format, "topics": list(self.topics),
            },
        }  # fmt: skip
        return {**where.get(self.kind, {}), **self.options}

    @property
    def identity(self) -> str:
        """What must stay as it is for a checkpoint to be read on: positions depend on it."""
        made = json.dumps(_generators(self.generators), sort_keys=True).encode()
        where = {
            "files": self.files,
            "redis": address_of(self.redis or ""), "kafka": address_of(self.kafka or ""),
            "generators": f"{len(self.generators or ())} of {sha256(made).hexdigest()[:16]}",
        }  # fmt: skip
        return json.dumps(
            {"backend": self.kind, "where": where.get(self.kind), "format": self.format},
            sort_keys=True,
        )


_KINDS = ("files", "generators", "redis", "kafka", "backend")


def import_path(backend: str | type[Any]) -> str:
    """Where a class is, as every process that reads the streams can import it."""
    if isinstance(backend, str):
        module, colon, name = backend.partition(":")
        parts = [*module.split("."), name]
        if not colon or not all(part.isidentifier() for part in parts):
            raise InvalidTopology(
                f"Streams(backend) is {backend!r}; write package.module:Class, or give the class."
            )
        return backend
    if not isinstance(backend, type):
        raise InvalidTopology(
            f"Streams(backend) is {backend!r}; give a class, or write package.module:Class."
        )
    found = sys.modules.get(backend.__module__)
    importable = getattr(found, "__spec__", None) is not None and "." not in backend.__qualname__
    if backend.__module__ == "__main__" or not importable:
        raise InvalidTopology(
            f"Streams(backend) is the class {backend.__qualname__} of {backend.__module__}, which "
            "executors cannot import; put it into a module of its own, at its top level."
        )
    return f"{backend.__module__}:{backend.__qualname__}"


def _generators(given: Mapping[str, Any] | None) -> dict[str, Any]:
    return {name: json.loads(made.to_json()) for name, made in (given or {}).items()}
