"""A run's directory: one owner at a time, and what must stay the same from run to run.

Layout below the directory: `queries/<name>` is Spark's checkpoint of a query, `penstock/` is ours:
a lock, the identity of the topology, and the commits of batches. All of it is private, and JSON.
"""

import re
import threading
import uuid
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from penstock.errors import InvalidInput, InvalidTopology, Unavailable, documented
from penstock.spark.checkpoint.durable_files import (
    exclusive,
    make_directory,
    remove_leftovers,
    remove_tree,
    write_atomically,
)
from penstock.spark.checkpoint.operators import refuse_changes
from penstock.spark.checkpoint.sealed import read_sealed

FIXED = ("identity", "epoch", "writer")  # at the first start, before any batch
_MOVED = re.compile(r"(.+)\.plan\d+")


def begun(directory: Path) -> bool:
    """Whether a run has begun in a directory, which another one would go on with."""
    identity = directory / "penstock" / "identity.json"
    return identity.exists() or any(_with_batches(directory, "offsets"))


def refuse_if_in_use(directory: Path) -> None:
    """Refuse a checkpoint that another run holds, or of which a part is missing.

    Nothing is made where there is none.
    """
    if (directory / "penstock" / "lock").exists() or begun(directory):
        with Checkpoint(directory):
            pass


class Checkpoint:
    """The directory, held under an exclusive lock while in use."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory.absolute()
        self._ours = self.directory / "penstock"
        self._held = ExitStack()
        self._recording = threading.Lock()  # queries, each in its thread, change one record

    @documented("operations")
    def __enter__(self) -> "Checkpoint":
        try:
            # One that was there is shared with whom its owner likes; what is ours below is not.
            for ours in (self.directory, self._ours, self.directory / "queries"):
                make_directory(ours)
            self._held.enter_context(exclusive(self._ours / "lock", wait=False))
        except BlockingIOError as error:
            raise Unavailable(
                f"checkpoint {self.directory} is in use by another run; end that run or choose "
                "another directory."
            ) from error
        except OSError as error:
            raise InvalidInput(
                f"checkpoint {self.directory} cannot be used: {error.strerror}."
            ) from error
        try:
            remove_leftovers(self._ours)
            self._refuse_part()
        except BaseException:
            self._held.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._held.close()

    def _refuse_part(self) -> None:
        """Refuse batches of Spark's without what they were begun with.

        Who the run is to its channels, when its streams began and where its queries are kept would
        be made up anew, and rows be written a second time.
        """
        for folder in _with_batches(self.directory, "offsets"):
            for name in FIXED:
                if not (self._ours / f"{name}.json").exists():
                    raise self._in_part(folder, f"{self._ours / name}.json is missing")
        for folder in _with_batches(self.directory, "commits"):
            moved = _MOVED.fullmatch(folder.name)
            kept = self.query_folder(moved.group(1) if moved else folder.name)
            if not any(_batches(kept / "offsets")):
                plan = self._ours / "plan.json"
                raise self._in_part(folder, f"{plan} is missing or older, so {kept} is to go on")

    def _in_part(self, folder: Path, why: str) -> InvalidInput:
        return InvalidInput(
            f"checkpoint {self.directory} was restored in part: {folder} has batches, and {why}; "
            "restore all of it from the same time, or begin with another checkpoint and other "
            "outputs."
        )

    @property
    def driver_lock(self) -> Path:
        """What the driver's JVM holds, as the other lock goes with its Python."""
        return self._ours / "lock-of-driver"

    def query(self, name: str) -> str:
        """Where Spark keeps the checkpoint of a query."""
        return self.query_folder(name).as_uri()

    def query_folder(self, name: str) -> Path:
        """The same as a path; a query whose state was carried over to another plan has moved."""
        record = self.plan()
        moved = record["directories"].get(name, name) if record is not None else name
        return self.directory / "queries" / str(moved)

    def has_batches(self) -> bool:
        """Whether a query has planned any."""
        return any(_with_batches(self.directory, "offsets"))

    def plan(self) -> dict[str, Any] | None:
        """What was recorded of the plan; None before the first start with one."""
        file = self._ours / "plan.json"
        return self._remembered("plan", {}) if file.exists() else None

    def record_plan(self, record: dict[str, Any]) -> None:
        """Replace what is recorded of the plan, whole or not at all."""
        write_atomically(self._ours / "plan.json", record)

    def superseded(self) -> dict[str, list[str]]:
        """The directories of each query that are kept until its next batch has committed."""
        record = self.plan() or {}
        return {query: left for query, left in record.get("superseded", {}).items() if left}

    def forget_superseded(self, query: str) -> None:
        """Remove what a query has left behind, never what it goes on with."""
        for directory in self.superseded().get(query, ()):
            left = self.directory / "queries" / directory
            if left != self.query_folder(query):
                remove_tree(left)
        with self._recording:
            record = self.plan() or {}
            if query in record.get("superseded", {}):
                del record["superseded"][query]
                self.record_plan(record)

    def mark_handed(self, batches: dict[str, int]) -> None:
        """Remember the last batch that queries handed to their sinks; no query that may go on."""
        write_atomically(self._ours / "stopped.json", {"batches": batches})

    def last_handed(self) -> dict[str, int]:
        """The last batch that each query handed to its sinks, of queries of which it is known."""
        if not (self._ours / "stopped.json").exists():
            return {}
        batches = self._remembered("stopped", {}).get("batches") or {}
        return {str(name): int(n) for name, n in batches.items()}

    @property
    def sources(self) -> Path:
        """Where sources of many streams keep their logs."""
        return self._ours / "sources"

    def commits(self, query: str) -> Path:
        """Where the commits of a query's batches are kept."""
        folder = self._ours / "commits" / query
        make_directory(folder)
        return folder

    @property
    def routes(self) -> Path:
        """Where sources keep their route tables."""
        return self._ours / "routes"

    def channel(self, name: str) -> Path:
        """Where a channel between this run's queries is kept."""
        return self._ours / "channels" / name

    def writer_id(self) -> str:
        """Who this run is to the channels it writes to; the same after a restart."""
        return str(self._remembered("writer", {"id": uuid.uuid4().hex})["id"])

    def epoch_s(self, now_s: float) -> float:
        """When this run's streams began: fixed at the first start, the same after a restart."""
        return float(self._remembered("epoch", {"epoch_s": now_s})["epoch_s"])

    @documented("operations")
    def check_identity(self, identity: dict[str, Any]) -> None:
        """Refuse a topology that does not fit what this checkpoint was created with."""
        before = self._remembered("identity", identity)
        changed = (self.plan() or {}).get("key_groups")
        if changed is not None:
            before["key_groups"] = changed
        for field, value in identity.items():
            if before.get(field) != value and not isinstance(value, dict):
                raise InvalidTopology(
                    f"checkpoint {self.directory} was created with {field} {before.get(field)!r}, "
                    f"not {value!r}; set it back or choose another checkpoint."
                )
            if isinstance(value, dict):
                self._check_parts(field, before.get(field, {}), value)

    @documented("operations")
    def check_operators(self, record: dict[str, Any], accept_changes: bool = False) -> None:
        """Refuse operators that make their state otherwise; older checkpoints know of none."""
        before = self._remembered("operators", record)
        if not accept_changes:
            refuse_changes(before, record, self.directory)
        if before != record:
            write_atomically(self._ours / "operators.json", record)

    def _check_parts(self, field: str, before: dict[str, Any], now: dict[str, Any]) -> None:
        whose = {"schema": "operator", "key": "component"}.get(field, field)
        for name in sorted(before.keys() | now.keys()):
            if before.get(name) != now.get(name):
                raise InvalidTopology(
                    f"{whose} {name!r}: {'it' if whose == field else field} was "
                    f"{before.get(name, 'absent')} when checkpoint {self.directory} was created "
                    f"and is {now.get(name, 'absent')} now; change it back or choose another "
                    "checkpoint."
                )

    def _remembered(self, name: str, value: dict[str, Any]) -> dict[str, Any]:
        file = self._ours / f"{name}.json"
        if not file.exists():
            write_atomically(file, value)
        try:
            return read_sealed(file)
        except (OSError, ValueError) as error:
            raise InvalidInput(
                f"{file} is damaged ({error}); restore it, or choose another checkpoint."
            ) from error


def _with_batches(directory: Path, log: str) -> Iterator[Path]:
    """The checkpoints of queries in which a log of Spark's has entries."""
    for found in sorted(directory.glob(f"queries/*/{log}")):
        if any(_batches(found)):
            yield found.parent


def _batches(log: Path) -> Iterator[Path]:
    return log.glob("[0-9]*")
