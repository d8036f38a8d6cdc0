"""A source's directory of routes: tables from its runner, reports from lanes and operators.

Tables are advice that a batch was made with, so they are on the disk before the batch is: the
batch's end offset names its table, and a batch that is repeated is routed by the same one. Reports
are statistics: written whole or not at all, read by age, and no loss when lost.
"""

import hashlib
import json
import logging
import os
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from penstock.spark.checkpoint.durable_files import (
    make_directory,
    remove,
    sync_directory,
    write_atomically,
)
from penstock.spark.checkpoint.sealed import read_sealed

log = logging.getLogger(__name__)

KEPT_TABLES = 100  # as many as Spark keeps of its offsets
_OF_BATCH = "batch-"
_damaged: set[str] = set()  # what was said of, in this process
Document = dict[str, Any]


@dataclass(frozen=True)
class RouteExchange:
    """The directory, as every process that knows its path sees it."""

    path: Path

    def prepare(self) -> None:
        """Make the directories; only whoever runs the source does."""
        for folder in (self.path.parent, self.path, self.path / "tables", self.path / "reports"):
            make_directory(folder)

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
        """The table of a version; None where it is gone, or damaged, which is said."""
        return _read(str(self._table(version)))

    def name(self, batch_id: int, version: str) -> None:
        """Say by which table a batch is dealt; of a batch that is repeated, the same."""
        file = self.path / "tables" / f"{_OF_BATCH}{batch_id}"
        if file.exists():
            sync_directory(file.parent)  # whoever wrote it may have failed to
        else:
            write_atomically(file, {"version": version})

    def named(self, batch_id: int) -> str | None:
        """The table by which a batch is dealt; None where nobody said."""
        found = _read(str(self.path / "tables" / f"{_OF_BATCH}{batch_id}"))
        return None if found is None else str(found["version"])

    def prune(self) -> None:
        """Forget tables, and which batch had which, that no batch can ask for any more."""
        named = (self.path / "tables").glob(f"{_OF_BATCH}*")
        by_number = sorted(named, key=lambda file: int(file.name.removeprefix(_OF_BATCH)))
        tables = sorted((self.path / "tables").glob("*.json"))
        for file in tables[:-KEPT_TABLES] + by_number[:-KEPT_TABLES]:
            remove(file)

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
        of_kind = [name for name in sorted(self.all_reports()) if name.split("-")[1:2] == [kind]]
        return [name for name in of_kind if not name.startswith(".")]  # those are being written

    def forget_reports(self, names: Iterable[str]) -> None:
        """Remove reports that everyone had time to read, as far as that is possible."""
        for name in names:
            with suppress(OSError):
                (self.path / "reports" / name).unlink()

    def all_reports(self) -> list[str]:
        """Names of all reports, also of those that are being written or never were to the end."""
        try:
            return os.listdir(self.path / "reports")
        except OSError:
            return []

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
    except OSError:
        return None
    except ValueError as error:
        # Routes decide where work is done and never what comes of it: no reason to end a query.
        if path not in _damaged:
            _damaged.add(path)
            log.warning(
                "route table %s is damaged, rows go by the first one instead: %s", path, error
            )
        return None
