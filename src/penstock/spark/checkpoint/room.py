"""Whether a disk that was full can be written to again."""

import os
import tempfile
from pathlib import Path

BYTES = 4 << 20  # what a few batches log, and a snapshot of little state


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
