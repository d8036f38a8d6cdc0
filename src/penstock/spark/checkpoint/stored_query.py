"""A query's checkpoint as it lies there: how its state is divided, and which batch was the last."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from penstock.errors import InvalidInput, InvalidTopology
from penstock.spark.checkpoint.carried_state import numbered
from penstock.spark.handles.driver import STRICT

PARTITIONS = "spark.sql.shuffle.partitions"


@dataclass(frozen=True)
class StoredQuery:
    """The checkpoint of one stateful query."""

    name: str
    folder: Path
    key_groups: int
    batch: int  # the last that was committed
    planned: int  # the last that was begun


def stored_query(
    name: str, folder: Path, may_be_written: Callable[[int], bool]
) -> StoredQuery | None:
    """A query that keeps state; None where there is nothing to divide."""
    last, planned = (max(numbered(folder / log), default=-1) for log in ("commits", "offsets"))
    if not (folder / "state").is_dir() or last < 0:
        return None
    if planned > last and may_be_written(planned):
        raise InvalidTopology(
            f"query {name!r}: batch {planned} was begun and not finished; start it once more, "
            "stop it when that batch is done, and change the number after that."
        )
    settings = _settings(folder / "offsets" / str(last))
    if settings.get(STRICT) == "false":
        raise InvalidTopology(
            f"query {name!r}: its state is divided by part of its keys ({STRICT} is false), which "
            "Spark cannot divide anew; begin a new checkpoint instead."
        )
    return StoredQuery(name, folder, int(settings[PARTITIONS]), last, planned)


def _settings(file: Path) -> dict[str, str]:
    try:
        document: dict[str, Any] = json.loads(file.read_text(encoding="utf-8").split("\n")[1])
        return dict(document["conf"])
    except (OSError, ValueError, IndexError, KeyError) as error:
        raise InvalidInput(f"{file} is not an offset log of Spark.") from error
