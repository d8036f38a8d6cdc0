"""Seconds of processors that a program took."""

import os
from pathlib import Path


def processor_s(pid: int) -> float:
    """Used by a process and all below it, those that ended included."""
    stat = _text(Path(f"/proc/{pid}/stat"))
    fields = stat.rpartition(")")[2].split()
    own = sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK") if fields else 0.0
    threads = list(Path(f"/proc/{pid}/task").iterdir()) if fields else []
    below = [int(child) for one in threads for child in _text(one / "children").split()]
    return own + sum(map(processor_s, below))


def _text(file: Path) -> str:
    """Of a process or thread; empty if it has ended by now."""
    try:
        return file.read_text()
    except OSError:
        return ""
