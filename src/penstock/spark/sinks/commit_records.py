"""The commit records of a query: one file for each batch whose outputs are promised.

A record is bound to the offsets that the batch was read from: a digest of what Spark logged of the
batch before it ran. Spark numbers batches from its own log, so after a checkpoint was restored in
part it may plan a batch of the same number over other rows, which the record must not swallow.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from penstock.errors import InvalidInput
from penstock.spark.checkpoint.batch_offsets import digest_of, keep_offsets
from penstock.spark.checkpoint.durable_files import remove, sync_directory, write_atomically
from penstock.spark.checkpoint.sealed import read_sealed

KEPT_COMMITS = 100  # Spark replays at most the last batch; the rest is for a person to read
VERSION = 2  # records of the first version are the promises alone, by sink

Promises = dict[str, dict[str, Any]]  # by sink: what is staged, and where it goes


@dataclass(frozen=True)
class CommitRecords:
    """A directory of records; `offsets` is where Spark logs the batches of the same query."""

    folder: Path
    offsets: Path | None = None

    def promised(self, batch_id: int) -> Promises | None:
        """What the record of a batch promises; None without one, a sentence if it is another's."""
        file = self.file(batch_id)
        if not file.exists():
            return None
        sync_directory(self.folder)  # whoever wrote it may have failed to
        record = _read(file)
        if record.get("version") != VERSION:
            return record
        if record["offsets"] is not None and record["offsets"] != self.digest(batch_id):
            raise InvalidInput(
                f"batch {batch_id} was committed before ({file}) and is now to be read from other "
                "offsets: the checkpoint was restored in part, so nothing was written; restore "
                "all of it from the same time, or remove that record and the output it names to "
                "have the batch written again."
            )
        promises: Promises = record["sinks"]
        return promises

    def keep_offsets(self, batch_id: int) -> None:
        """Sync what Spark logged of a batch, before its record is written."""
        keep_offsets(self.offsets, batch_id)

    def write(self, batch_id: int, promises: Promises) -> None:
        """Make a batch true, once everything it promises is on the disk."""
        record = {"version": VERSION, "offsets": self.digest(batch_id), "sinks": promises}
        write_atomically(self.file(batch_id), record)

    def digest(self, batch_id: int) -> str | None:
        """Of what Spark logged of a batch; None where that is not known."""
        return digest_of(self.offsets, batch_id)

    def forget_before(self, batch_id: int) -> None:
        """Remove the record that is too old for anybody once a batch is written."""
        remove(self.file(batch_id - KEPT_COMMITS))

    def newest(self) -> int | None:
        """The last batch that has a record."""
        found = [int(file.stem) for file in self.folder.glob("*.json") if file.stem.isdigit()]
        return max(found, default=None)

    def file(self, batch_id: int) -> Path:
        """The record of a batch, where it has one."""
        return self.folder / f"{batch_id}.json"


def _read(file: Path) -> dict[str, Any]:
    try:
        return read_sealed(file)
    except (OSError, ValueError) as error:
        raise InvalidInput(
            f"commit record {file} is damaged ({error}); restore it from a copy of the checkpoint."
        ) from error
