"""How many processors a component has, told to the processes that read its input."""

from pathlib import Path

from penstock.spark.sources.told import read_told, tell


def write_parallelism(file: Path, processors: int) -> None:
    """Tell a component its processors."""
    tell(file, parallelism=processors)


def read_parallelism(file: str | Path | None, default: int) -> int:
    """What was told last; the default where nothing was, or nothing that can be read."""
    told = read_told(file).parallelism
    return default if told is None else told
