"""Where a Python process finds PySpark: in its installed files, which are compiled."""

from collections.abc import Sequence
from importlib.machinery import PathFinder
from pathlib import Path


def without_copies(path: Sequence[str]) -> list[str]:
    """A path for imports without archives that belong to a PySpark that is installed in it."""
    folders = [entry for entry in path if Path(entry).suffix not in (".zip", ".jar")]
    found = PathFinder.find_spec("pyspark", folders)
    if found is None or found.origin is None:
        return list(path)
    installed = Path(found.origin).resolve().parent
    return [
        entry
        for entry in path
        if entry in folders or not Path(entry).resolve().is_relative_to(installed)
    ]
