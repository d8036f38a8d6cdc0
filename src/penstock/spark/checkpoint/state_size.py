"""How large each key group's state is, from the files of its checkpoint."""

import json
import os
import re
import zipfile
from functools import lru_cache
from pathlib import Path
from urllib.parse import unquote, urlparse

import numpy as np

from penstock.model.observation import Floats

_VERSION = re.compile(r"(\d+)(?:_[^.]*)?\.(zip|changelog|snapshot|delta)")


def state_bytes(checkpoint: str, operators: tuple[int, ...], key_groups: int) -> Floats:
    """Bytes to load if a key group moved: its newest snapshot and the changes since.

    NaN for every key group when the checkpoint is not on a local file system.
    """
    url = urlparse(checkpoint)
    if url.scheme not in ("", "file"):
        return np.full(key_groups, np.nan)
    root = Path(unquote(url.path)) / "state"
    totals = np.zeros(key_groups)
    for operator in operators:
        for group in range(key_groups):
            totals[group] += _newest_bytes(root / str(operator) / str(group))
    return totals


def _newest_bytes(folder: Path) -> float:
    """Stores of a join are folders below their key group; other stores are the folder itself."""
    snapshot_version, snapshot_bytes, snapshot = -1, 0, ""
    changes: list[tuple[int, int]] = []
    inner = 0.0
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.is_dir():
                    inner += _newest_bytes(Path(entry.path))
                    continue
                found = _VERSION.fullmatch(entry.name)
                if found is None:
                    continue
                version, size = int(found.group(1)), entry.stat().st_size
                if found.group(2) in ("zip", "snapshot"):
                    if version > snapshot_version:
                        snapshot_version, snapshot_bytes, snapshot = version, size, entry.path
                else:
                    changes.append((version, size))
    except FileNotFoundError:  # not written yet, or removed by Spark's maintenance meanwhile
        return inner
    later = sum(size for version, size in changes if version > snapshot_version)
    if snapshot.endswith(".zip"):
        snapshot_bytes += _table_bytes(snapshot)
    return inner + snapshot_bytes + later


@lru_cache(maxsize=10_000)
def _table_bytes(snapshot: str) -> int:
    """RocksDB's tables lie beside a snapshot, shared with others; it names those it is made of."""
    try:
        with zipfile.ZipFile(snapshot) as archive:
            lines = archive.read("metadata").decode("utf-8").splitlines()
        return sum(int(table["sizeBytes"]) for table in json.loads(lines[1])["sstFiles"])
    except (OSError, KeyError, IndexError, ValueError, zipfile.BadZipFile):
        return 0  # removed meanwhile, or of a form not known here: a size is only a hint
