"""How the sources of a topology are read."""

from dataclasses import dataclass

from penstock.spark.sources.control import Controls


@dataclass(frozen=True)
class Reading:
    """When the streams of sources began, and whether rows are counted at edges.

    `controls` are the channels by which the driver orders things of its sources.
    """

    epoch_s: float
    measured: bool = True
    controls: Controls | None = None
    reuse: bool = False  # what was read to look at the operators is what runs; for one query
    at_once: bool = False  # what sources have at first is all that is read
