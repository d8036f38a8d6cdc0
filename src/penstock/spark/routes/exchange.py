"""A source's directory of routes: tables from its runner, reports from lanes and operators.

Tables are advice that a batch was made with, so they are on the disk before the batch is: the
batch's end offset names its table, and a batch that is repeated is routed by the same one. Reports
are statistics: written whole or not at all, read by age, and no loss when lost.
"""

import hashlib
import json
import os
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from penstock.spark.checkpoint.durable_files import write_atomically
from penstock.spark.checkpoint.sealed import read_sealed

KEPT_TABLES = 100  # as many as Spark keeps of its offsets
KEPT_REPORTS_S = 120.0
Document = dict[str, Any]


@dataclass(frozen=True)
class RouteExchange:
    """The directory, as every process that knows its path sees it."""

    path: Path

    def prepare(self) -> None:
        """Make the directories; only whoever runs the source does."""
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        for folder in (self.path, self.path / "tables", self.path / "reports"):
            folder.mkdir(mode=0o700, exist_ok=True)

    def write_table(self, document: Document) -> str:
        """Keep a table; returns its version: a number after all others, and what it holds.

        Two readers of one source may take the same number; their contents then distinguish them.
        """
        text = json.dumps(document, sort_keys=True)
        numbers = [int(file.name[:8]) for file in (self.path / "tables").glob("*.json")]
        number = max(numbers, default=-1) + 1
        version = f"{number:08d}-{hashlib.sha256(text.encode()).hexdigest()[:12]}"
        write_atomically(self._table(version), document)
        return version

    def read_table(self, version: str) -> Document | None:
        """The table of a version; None where it is gone or damaged."""
        return _read(str(self._table(version)))

    def name(self, batch_id: int, version: str) -> None:
        """Say by which table a batch is dealt; of a batch that is repeated, the same."""
        file = self.path / "tables" / f"batch-{batch_id}"
        if not file.exists():
            write_atomically(file, {"version": version})
            with suppress(OSError):
                (self.path / "tables" / f"batch-{batch_id - KEPT_TABLES}").unlink()

    def named(self, batch_id: int) -> str | None:
        """The table by which a batch is dealt; None where nobody said."""
        found = _read(str(self.path / "tables" / f"batch-{batch_id}"))
        return None if found is None else str(found["version"])

    def prune(self) -> None:
        """Forget tables no batch can ask for any more, and reports everyone had time to read."""
        for file in sorted((self.path / "tables").glob("*.json"))[:-KEPT_TABLES]:
            with suppress(OSError):
                file.unlink()
        before = f"{time.time_ns() - int(KEPT_REPORTS_S * 1e9):020d}"
        with suppress(OSError):
            for name in os.listdir(self.path / "reports"):
                if name.lstrip(".") < before:
                    with suppress(OSError):
                        (self.path / "reports" / name).unlink()

    def report(self, kind: str, who: str, content: Document) -> None:
        """Send the runner a report; one that cannot be written is dropped."""
        name = f"{time.time_ns():020d}-{kind}-{who}"
        scratch = self.path / "reports" / f".{name}"
        with suppress(OSError):
            descriptor = os.open(scratch, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
                json.dump(content, stream)
            scratch.rename(self.path / "reports" / f"{name}.json")

    def report_names(self, kind: str) -> list[str]:
        """The reports of a kind that are there, in order."""
        try:
            names = sorted(os.listdir(self.path / "reports"))
        except OSError:
            return []
        of_kind = [name for name in names if name.split("-")[1:2] == [kind]]
        return [name for name in of_kind if not name.startswith(".")]  # those are being written

    def reports(self, names: Iterable[str]) -> Iterator[tuple[str, Document]]:
        """What some reports say, as far as they can be read."""
        for name in names:
            with suppress(OSError, json.JSONDecodeError):
                content = json.loads((self.path / "reports" / name).read_text("utf-8"))
                if isinstance(content, dict):
                    yield name, content

    def _table(self, version: str) -> Path:
        return self.path / "tables" / f"{version}.json"


@lru_cache(maxsize=16)
def _cached(path: str) -> Document:
    """A version never changes, so a worker that lives on reads it once."""
    return read_sealed(Path(path))


def _read(path: str) -> Document | None:
    try:
        return _cached(path)
    except (OSError, ValueError):
        return None
