"""The settings of one `penstock` source, as they travel through Spark: one JSON text."""

import json
import os
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from penstock.errors import InvalidInput
from penstock.model.durations import parse_duration_s
from penstock.model.sources import CAPACITY_BEFORE_MEASURED, Streams
from penstock.spark.checkpoint.durable_files import make_directory, write_atomically
from penstock.spark.checkpoint.sealed import read_sealed

INLINE_BYTES = 8_192  # longer descriptions of a backend are kept in a file


@dataclass(frozen=True)
class Limits:
    """What the running program may change; see model.sources.Admission."""

    strategy: str = "drf-m"
    forecaster: str | None = None
    lane_capacity_per_s: float = CAPACITY_BEFORE_MEASURED
    lane_rows: int = 500_000
    max_rows: int | None = None
    lanes_max: int = 16
    period_s: float = 5.0
    horizon: int = 2
    latency_bound_s: float = 5.0
    overload_by: str = "either"
    accept_below: float = 0.85
    drain_below: float | None = 0.6


@dataclass(frozen=True)
class SourceSettings:
    """Everything a runner and its tasks need to know."""

    source: str
    directory: str  # of this source in one query: logs, control file, status
    backend: str
    options: dict[str, Any]
    dead_letters: str
    letters_age_s: float = 30 * 86_400.0
    letters_bytes: int = 256 * 2**20
    departed_age_s: float = 30 * 86_400.0
    stream_column: str | None = None
    declared: str | None = None
    discover: bool = True
    discovery_period_s: float = 1.0
    learns_capacity: bool = False  # of a lane, from its tasks
    packed: bool = False  # rows cross to Spark as arrays
    limits: Limits = field(default_factory=Limits)

    def to_json(self) -> str:
        """Text that `from_json` reads back to equal settings."""
        return json.dumps(asdict(self), sort_keys=True)

    @classmethod
    def from_json(cls, text: str) -> "SourceSettings":
        """The settings of a text made by `to_json`."""
        document = json.loads(text)
        document["limits"] = Limits(**document["limits"])
        kept = document["options"].get("@file")
        if kept is not None:
            document["options"] = _kept_options(Path(kept))
        return cls(**document)


def settings_of(
    streams: Streams,
    source: str,
    directory: Path | None,
    epoch_s: float,
    max_latency_s: float | None = None,
) -> SourceSettings:
    """The settings of a topology's source; without a directory it is only looked at, never run."""
    options = streams.backend_options
    if streams.kind == "generators":
        options["epoch_s"] = epoch_s
    if streams.kind == "files":  # executors have working directories of their own
        options["directory"] = os.path.abspath(options["directory"])
    if directory is not None:
        make_directory(directory)
        if len(json.dumps(options)) > INLINE_BYTES:
            options = {"@file": str(_keep_options(directory / "backend.json", options))}
    return SourceSettings(
        source=source,
        directory=str(directory or ""),
        backend=streams.kind,
        options=options,
        dead_letters=os.path.abspath(
            streams.dead_letters or Path(directory or "") / "dead-letters"
        ),
        letters_age_s=parse_duration_s(streams.dead_letter_age, "dead_letter_age"),
        letters_bytes=streams.dead_letter_mb * 2**20,
        departed_age_s=parse_duration_s(streams.departed_age, "departed_age"),
        stream_column=streams.stream_column,
        declared=None if streams.declared is None else os.path.abspath(streams.declared),
        discover=streams.discover,
        discovery_period_s=parse_duration_s(streams.discovery_period, "discovery_period"),
        learns_capacity=streams.admission.lane_capacity is None,
        limits=Limits(**streams.admission.to_dict(max_latency_s)),
    )


def _keep_options(file: Path, options: dict[str, Any]) -> Path:
    """Write them where they are not there yet; one that is damaged is written anew."""
    wanted = json.loads(json.dumps(options))  # as they are read back
    try:
        if read_sealed(file) == wanted:
            return file
    except (OSError, ValueError):
        pass
    write_atomically(file, wanted)
    return file


def _kept_options(file: Path) -> dict[str, Any]:
    try:
        return read_sealed(file)
    except (OSError, ValueError) as error:
        raise InvalidInput(
            f"{file} is damaged ({error}); start the run again, which writes it anew."
        ) from error
