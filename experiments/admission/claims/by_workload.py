"""What A1 to A4 share: every strategy on every workload, in words and as bars."""

from itertools import pairwise
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from experiments.admission.trials.strategies import (
    MEASURES,
    ORDER,
    RULES,
    Outcomes,
)
from experiments.admission.workloads.streams import WORKLOADS
from experiments.claim import save_figure


def order_parts(outcomes: Outcomes, measure: str) -> dict[str, bool]:
    """Whether the strategies come in the order of the paper, on each workload."""
    parts = {}
    for workload in WORKLOADS:
        for better, worse in pairwise(ORDER):
            low, high = (outcomes.mean(measure, workload, name) for name in (better, worse))
            strict = worse == "par"
            sign = "<" if strict else "<="
            parts[f"{workload}: {better} {sign} {worse}"] = low < high if strict else low <= high
    return parts


def rates_moved(outcomes: Outcomes) -> str:
    """How fast the streams are that are redirected."""
    rates = "; ".join(
        f"{w} " + ", ".join(f"{n} {outcomes.moved_rate_per_s(w, n):.0f}" for n in ORDER[:3])
        for w in WORKLOADS
        if w != "constw"  # hardly any moves there
    )
    return f"mean rate of those redirected, rows per s: {rates}"


def shown(outcomes: Outcomes, measure: str, form: str) -> str:
    """One measure of every strategy on every workload."""
    return "; ".join(
        f"{workload}: "
        + ", ".join(f"{name} {outcomes.spread(measure, workload, name):{form}}" for name in ORDER)
        for workload in WORKLOADS
    )


def tables(outcomes: Outcomes, measure: str) -> dict[str, object]:
    """One measure under all rules, as JSON."""
    assert measure in MEASURES
    return {f"{measure} ({rules})": outcomes.table(measure, rules) for rules in RULES}


def bars(outcomes: Outcomes, folder: Path, name: str, panels: dict[str, str]) -> tuple[str, ...]:
    """A panel for each measure, a group of bars in it for each workload."""
    figure = Figure(figsize=(6.5 * len(panels), 3.4))
    axes = figure.subplots(1, len(panels), squeeze=False)[0]
    place = np.arange(len(WORKLOADS))
    for panel, (measure, label) in zip(axes, panels.items(), strict=True):
        for number, strategy in enumerate(reversed(ORDER)):
            runs = np.array([outcomes.of(measure, w, strategy) for w in WORKLOADS])
            panel.bar(
                place + 0.16 * (number - 2), runs.mean(axis=1), 0.16, yerr=runs.std(axis=1),
                label=strategy, capsize=2,
            )  # fmt: skip
        panel.set_xticks(place, list(WORKLOADS))
        panel.set_ylabel(label)
        if measure != "above_fewest":
            panel.set_yscale("symlog", linthresh=1.0)  # PAR is far above the rest
    axes[0].legend(fontsize=8)
    return save_figure(figure, folder, name)
