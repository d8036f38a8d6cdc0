"""How many processors a component has, told to the processes that read its input.

A source's runner is a process of its own, fixed when its query starts; a small file is what can
still be told to it. It is read at each batch, so a change holds from the next batch on.
"""

import json
from pathlib import Path

from penstock.spark.checkpoint import write_atomically


def write_parallelism(file: Path, processors: int) -> None:
    """Tell a component its processors."""
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    write_atomically(file, {"parallelism": processors})


def read_parallelism(file: str | Path | None, default: int) -> int:
    """What was told last; the default where nothing was, or nothing that can be read."""
    if file is None:
        return default
    try:
        told = int(json.loads(Path(file).read_text(encoding="utf-8"))["parallelism"])
    except (OSError, ValueError, KeyError, TypeError):
        return default
    return told if told >= 1 else default
