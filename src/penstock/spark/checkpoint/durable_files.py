"""Files that a crash leaves whole: written beside, synced, then renamed."""

import json
import os
from pathlib import Path
from typing import Any


def write_atomically(file: Path, value: dict[str, Any]) -> None:
    """Write a JSON file whole or not at all, and on the disk before returning."""
    scratch = file.with_suffix(".new")
    descriptor = os.open(scratch, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
        json.dump(value, stream, sort_keys=True)
        stream.flush()
        os.fsync(stream.fileno())
    scratch.replace(file)
    folder = os.open(file.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
