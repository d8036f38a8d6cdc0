"""In every Python process of a soaked program: its clock can be stepped, and its disk be slow.

Python imports this at its start because its folder is on PYTHONPATH. The files `clock` (seconds to
add) and `sync` (seconds that a sync takes longer) in PENSTOCK_SOAK_FAULTS say what holds now.
"""

import os
import time
from typing import Any

_FOLDER = os.environ.get("PENSTOCK_SOAK_FAULTS")
_LOOK_S = 0.05


def _faulty(folder: str) -> None:
    real, real_ns, fsync, fdatasync = time.time, time.time_ns, os.fsync, os.fdatasync
    known: dict[str, tuple[float, float]] = {}

    def said(what: str) -> float:
        now_s = time.monotonic()
        value, since_s = known.get(what, (0.0, -1.0))
        if now_s - since_s > _LOOK_S:
            try:
                with open(f"{folder}/{what}", encoding="ascii") as file:
                    value = float(file.read() or 0.0)
            except (OSError, ValueError):
                value = 0.0
            known[what] = (value, now_s)
        return value

    def slowly(sync: Any) -> Any:
        def synced(descriptor: int) -> None:
            time.sleep(said("sync"))
            sync(descriptor)

        return synced

    time.time = lambda: real() + said("clock")
    time.time_ns = lambda: real_ns() + int(said("clock") * 1e9)
    os.fsync, os.fdatasync = slowly(fsync), slowly(fdatasync)


if _FOLDER:
    _faulty(_FOLDER)
