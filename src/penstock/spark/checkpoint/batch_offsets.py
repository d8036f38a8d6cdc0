"""Spark's own log of the offsets of batches: what a batch was read from, made sure of and told.

Spark numbers batches from this log, so after a checkpoint was restored in part it may plan a batch
of the same number over other rows. Whatever keeps a batch's output keeps a digest of its entry.
"""

import hashlib
from pathlib import Path
from urllib.parse import unquote, urlsplit

from penstock.spark.checkpoint.durable_files import StorageFailure, sync_directory, sync_file


def offsets_folder(checkpoint: str) -> Path | None:
    """The log below a checkpoint, by the URI that Spark has of it; None where it is not a file."""
    place = urlsplit(checkpoint)
    if place.scheme not in ("", "file"):
        return None
    found = [Path(path) / "offsets" for path in (place.path, unquote(place.path))]
    return next((folder for folder in found if folder.is_dir()), None)


def keep_offsets(offsets: Path | None, batch_id: int) -> None:
    """Sync what Spark logged of a batch, as Spark does not.

    After a power cut a batch that is true must not be planned anew over other rows; nor must the
    log of the batch before it, where it begins, be found empty.
    """
    if offsets is not None:
        sync_file(offsets / str(batch_id))
        sync_directory(offsets)


def digest_of(offsets: Path | None, batch_id: int) -> str | None:
    """Of what Spark logged of a batch; None where that is not known."""
    if offsets is None:
        return None
    file = offsets / str(batch_id)
    try:
        return hashlib.sha256(file.read_bytes()).hexdigest()
    except OSError as error:
        raise StorageFailure("read", file, error) from error
