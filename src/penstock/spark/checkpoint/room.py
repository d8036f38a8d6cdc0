"""Whether disks that were full can be written to again."""

import os
import tempfile
from collections.abc import Iterable
from pathlib import Path

BYTES = 4 << 20  # what a few batches log, and a snapshot of little state


def have_room(directories: Iterable[Path]) -> bool:
    """Whether all have; one that is not there yet is asked for where it will be."""
    return all(
        has_room(next(there for there in (one, *one.absolute().parents) if there.is_dir()))
        for one in directories
    )


def has_room(directory: Path) -> bool:
    """By writing there: what a file system says is free knows nothing of quotas."""
    try:
        with tempfile.TemporaryFile(dir=directory) as scratch:
            scratch.write(bytes(BYTES))
            scratch.flush()
            os.fsync(scratch.fileno())
    except OSError:
        return False
    return True
