"""How the sources of a topology are read."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Reading:
    """When the streams of sources began, and whether rows are counted at edges."""

    epoch_s: float
    measured: bool = True
    parallelism_file: str | None = None  # tells our sources how many tasks are to read
    reuse: bool = False  # what was read to look at the operators is what runs; for one query
    at_once: bool = False  # generated streams are there whole, whenever their rows would arrive
