"""How large each key group's state is, from the files of its checkpoint."""

import os
import re
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
    snapshot_version, snapshot_bytes = -1, 0
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
                        snapshot_version, snapshot_bytes = version, size
                else:
                    changes.append((version, size))
    except FileNotFoundError:  # not written yet, or removed by Spark's maintenance meanwhile
        return inner
    later = sum(size for version, size in changes if version > snapshot_version)
    return inner + snapshot_bytes + later
