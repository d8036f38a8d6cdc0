"""S3 (ch. 7 s. 3.3): the advertising topology, whose filter lets little through."""

from pathlib import Path

import numpy as np

from experiments.claim import Claim, judged, save_figure
from experiments.scaling.claims.curves import curves
from experiments.scaling.trials.run import less_cpu, shrink_of, trial
from experiments.scaling.workloads.streams import THREE_STEP
from experiments.scaling.workloads.workflows import (
    advertising,
)
from experiments.statistics import spread
from penstock.scaling.policies.autoscale import Autoscale
from penstock.scaling.policies.static import Static

MOST_TASKS = 8  # of an operator, as printed
ABOUT = 0.10  # points a saving may be off and still be "about" the printed one


def claim(folder: Path, seeds: tuple[int, ...], quick: bool) -> Claim:
    """The advertising topology: a filter lets little through to the slow operators."""
    shrink, workflow = shrink_of(quick), advertising()
    found = {
        (start, name): [
            trial(workflow, THREE_STEP, policy, seed, workflow.degrees(start), shrink)
            for seed in seeds
        ]
        for start in ("ConfMin", "ConfExpt")
        for name, policy in (("static", Static()), ("AUTOSCALE", Autoscale(max_degree=MOST_TASKS)))
    }
    saved = less_cpu(found["ConfExpt", "AUTOSCALE"], found["ConfExpt", "static"])
    over = [-share for share in less_cpu(found["ConfMin", "AUTOSCALE"], found["ConfMin", "static"])]
    parts = {
        "ConfMin does not congest": not any(one.congested for one in found["ConfMin", "static"]),
        "AUTOSCALE resizes although nothing congests": all(
            one.reconfigurations > 0 for one in found["ConfMin", "AUTOSCALE"]
        ),
        "about 50% less from ConfExpt": bool(abs(np.mean(saved) - 0.5) <= ABOUT),
        "about 12% overhead from ConfMin": bool(abs(np.mean(over) - 0.12) <= ABOUT),
    }
    why = (
        " What is saved from ConfExpt is the share of it that is never needed, and its degrees are "
        f"not printed: with eight tasks for each slow operator all but {1 - np.mean(saved):.0%} "
        "can go."
    )
    return judged(
        "S3",
        paper="Advertising topology: about 50% less resources from ConfExpt, about 12% more than "
        "needed from ConfMin, which does not congest.",
        ours=f"{spread(saved):.1%} less from ConfExpt, {spread(over):.1%} more from ConfMin.",
        where="sim",
        parts=parts,
        why="" if parts["about 50% less from ConfExpt"] else why,
        figures=save_figure(
            curves(
                {
                    start: {name: found[start, name][0] for name in ("static", "AUTOSCALE")}
                    for start in ("ConfMin", "ConfExpt")
                }
            ),
            folder,
            "scaling-S3",
        ),
        numbers={"saved": spread(saved).pair, "overhead": spread(over).pair},
    )
