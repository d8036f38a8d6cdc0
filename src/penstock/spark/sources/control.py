"""What the running program tells a source: a small JSON file that the runner looks at each batch.

It says what is wanted, not what to do, so reading it twice changes nothing and a driver that dies
leaves the source as it is.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from penstock.errors import InvalidInput
from penstock.forecast.metadata import NAMES, metadata_from
from penstock.model.sources import OVERLOAD_BY, STRATEGIES
from penstock.spark.checkpoint.durable_files import write_atomically
from penstock.spark.sources.settings import Limits

FILE = "control.json"
WHOLE = ("lane_rows", "max_rows", "lanes_max", "horizon")


@dataclass(frozen=True)
class Control:
    """Streams added and removed, streams to be read on from where they now begin, and limits."""

    added: dict[str, dict[str, Any]] = field(default_factory=dict)
    removed: tuple[str, ...] = ()
    # By name, the position at which a stream was suspended: the order holds for that one only.
    resumed: dict[str, tuple[int, int]] = field(default_factory=dict)
    limits: dict[str, Any] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """As JSON."""
        return {
            "added": self.added,
            "removed": list(self.removed),
            "resumed": {name: list(place) for name, place in self.resumed.items()},
            "limits": self.limits,
        }

    def applied(self, limits: Limits) -> Limits:
        """The limits as the running program wants them."""
        return replace(limits, **self.limits)


def read_control(directory: Path) -> Control:
    """What is wanted now; nothing when no one ever asked."""
    try:
        document = json.loads((directory / FILE).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return Control()
    return Control(
        document["added"],
        tuple(document["removed"]),
        {name: (int(place[0]), int(place[1])) for name, place in document["resumed"].items()},
        document["limits"],
    )


def write_control(directory: Path, control: Control) -> None:
    """Say what is wanted from now on."""
    write_atomically(directory / FILE, control.to_dict())


def check_meta(name: str, meta: Mapping[str, Any]) -> dict[str, Any]:
    """Meta-data of a stream, or a sentence with what is wrong with it."""
    for key, value in meta.items():
        if key not in NAMES:
            raise InvalidInput(f"stream {name!r}: {key!r} is unknown; allowed: {', '.join(NAMES)}.")
        number = isinstance(value, int | float) and not isinstance(value, bool)
        signed = key == "slope"
        if key != "transition" and not (number and (signed or value >= 0)):
            what = "a number" if signed else "a number of at least 0"
            raise InvalidInput(f"stream {name!r}: {key} is {value!r}; give {what}.")
    metadata_from([meta], f"stream {name!r}: streams")
    return dict(meta)


def check_limits(limits: Mapping[str, Any]) -> dict[str, Any]:
    """Limits a program may set, or a sentence with what is wrong."""
    known = {f.name for f in fields(Limits)}
    for key, value in limits.items():
        if key not in known:
            raise InvalidInput(f"limit {key!r} is unknown; allowed: {', '.join(sorted(known))}.")
        optional = key in ("max_rows", "drain_below")
        number = isinstance(value, int | float) and not isinstance(value, bool) and value > 0
        if key in WHOLE and isinstance(value, float) and not value.is_integer():
            raise InvalidInput(f"limit {key} is {value!r}; give a whole number.")
        words = {"strategy": STRATEGIES, "overload_by": OVERLOAD_BY}.get(key)
        if words is not None and value not in words:
            raise InvalidInput(f"limit {key} is {value!r}; allowed: {', '.join(words)}.")
        if words is None and not number and not (optional and value is None):
            raise InvalidInput(f"limit {key} is {value!r}; give a number above 0.")
    return dict(limits)
