"""What a running program tells the processes that read its input, from the next batch on.

A source's runner is a process of its own, fixed when its query starts; a small file is what can
still be told to it. It is read at each batch, so a change holds from the next batch on.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from penstock.spark.checkpoint.durable_files import write_atomically


@dataclass(frozen=True)
class Told:
    """What was told last; nothing of it holds where nothing was told."""

    parallelism: int | None = None  # tasks that are to read a batch
    interval_s: float = 0.0  # least time between two batches
    shed: float = 0.0  # share of the rows to drop
    cheaper: tuple[str, ...] = ()  # operators that run in their cheaper form


AS_EVER = {"interval_s": 0.0, "shed": 0.0, "cheaper": []}


def tell(file: Path, **changed: Any) -> None:
    """Say something else than before, of the fields of Told; the rest stays."""
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    write_atomically(file, _read(file) | changed)


def read_told(file: str | Path | None) -> Told:
    """What was told last, as far as it can be read."""
    if file is None:
        return Told()
    document = _read(Path(file))
    try:
        parallelism = document.get("parallelism")
        return Told(
            int(parallelism) if parallelism is not None and int(parallelism) >= 1 else None,
            max(0.0, float(document.get("interval_s", 0.0))),
            min(1.0, max(0.0, float(document.get("shed", 0.0)))),
            tuple(map(str, document.get("cheaper", ()))),
        )
    except (ValueError, TypeError):
        return Told()


def _read(file: Path) -> dict[str, Any]:
    try:
        document = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return document if isinstance(document, dict) else {}
