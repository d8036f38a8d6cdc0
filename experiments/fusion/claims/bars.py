"""What F1 and F2 share: both streams, the plans compared, and bars of them."""

from collections.abc import Mapping

import numpy as np
from matplotlib.axes import Axes

from experiments.fusion.trials.random_topologies import (
    BASELINE,
    DEGREES,
    PLANNERS,
)
from experiments.statistics import Spread

FUSED = ("greedy", "mwsc")  # what the paper tests; mwsc-literal is shown beside them
EVERY = (BASELINE, *PLANNERS)
BOTH = (False, True)  # the uniform stream and the skewed one


def stream_name(skewed: bool) -> str:
    """How its keys are spread."""
    return "zipf" if skewed else "uniform"


def draw_bars(axes: Axes, value: Mapping[tuple[str, int], Spread], what: str, skewed: bool) -> None:
    """A group of bars for each degree, a bar in it for each plan."""
    width = 0.8 / len(EVERY)
    for number, name in enumerate(EVERY):
        spreads = [value[name, degree] for degree in DEGREES]
        axes.bar(
            np.arange(len(DEGREES)) + (number - 1.5) * width,
            [100 * s.mean for s in spreads],
            width,
            yerr=[100 * s.deviation for s in spreads],
            label=name,
            capsize=2,
        )
    axes.set_xticks(range(len(DEGREES)), [f"d = {d}" for d in DEGREES])
    axes.set_ylabel(what)
    axes.set_title(f"{stream_name(skewed)} keys")
