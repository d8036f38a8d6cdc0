"""S2 (ch. 7 s. 3): static and AUTOSCALE, from the least and from an expert's degrees."""

from collections.abc import Callable
from pathlib import Path

import numpy as np

from experiments.claim import Claim, judged, save_figure
from experiments.scaling.claims.curves import curves
from experiments.scaling.trials.run import Outcome, less_cpu, shrink_of, trial
from experiments.scaling.workloads.streams import FIVE_STEP, THREE_STEP
from experiments.scaling.workloads.workflows import (
    Workflow,
    diamond,
    linear,
    star,
)
from experiments.statistics import spread
from penstock.scaling.policies.autoscale import Autoscale
from penstock.scaling.policies.static import Static

MOST_TASKS = 8  # of an operator, as printed
ABOUT = 0.10  # points a saving may be off and still be "about" the printed one
SAME_SHARE = 0.01  # of results lost, for "the same performance"
SAVED = {"linear": 0.375, "diamond": 0.35, "star": 0.246}
WORKFLOWS: tuple[Callable[[], Workflow], ...] = (linear, diamond, star)
POLICIES = ("AUTOSCALE", "static")
STREAMS = {"3-step": THREE_STEP, "5-step": FIVE_STEP}
WHY_S2 = (
    " What is saved follows from how long the stream is low, which the figures do not give in "
    "numbers; a star's three sinks see the same shape at a third of the rate with three times the "
    "cost, so each saves what the one sink of the others does."
)
Found = dict[tuple[str, str, str, str], list[Outcome]]


def claim(folder: Path, seeds: tuple[int, ...], quick: bool) -> Claim:
    """Static and AUTOSCALE from the least and from an expert's degrees."""
    shrink = shrink_of(quick)
    workflows = [make() for make in (WORKFLOWS[:1] if quick else WORKFLOWS)]
    streams = {"3-step": THREE_STEP} if quick else STREAMS
    found = {
        (workflow.name, stream, start, name): [
            trial(workflow, knots, policy, seed, workflow.degrees(start), shrink) for seed in seeds
        ]
        for workflow in workflows
        for stream, knots in streams.items()
        for start in ("ConfMin", "ConfExpt")
        for name, policy in (("static", Static()), ("AUTOSCALE", Autoscale(max_degree=MOST_TASKS)))
    }
    saved = {
        one.name: less_cpu(*(found[one.name, "3-step", "ConfExpt", name] for name in POLICIES))
        for one in workflows
    }
    parts = dict[str, bool]()
    for name in saved:
        for stream in streams:
            at = f"{name}, {stream}"
            parts[f"{at}: static ConfMin congests for good"] = all(
                one.congested for one in found[name, stream, "ConfMin", "static"]
            )
            parts[f"{at}: AUTOSCALE does not"] = not any(
                one.congested for one in found[name, stream, "ConfMin", "AUTOSCALE"]
            )
        lost = [
            spread(one.lost_share for one in found[name, "3-step", "ConfExpt", policy]).mean
            for policy in POLICIES
        ]
        parts[f"{name}: from ConfExpt the same performance"] = lost[0] <= lost[1] + SAME_SHARE
        parts[f"{name}: about {SAVED[name]:.1%} saved"] = bool(
            abs(np.mean(saved[name]) - SAVED[name]) <= ABOUT
        )
    return judged(
        "S2",
        paper="Linear, diamond and star under 3-step and 5-step streams: ConfMin static congests "
        "and never recovers, AUTOSCALE does not congest; from ConfExpt the same performance with "
        "about 37.5%, 35% and 24.6% less resources.",
        ours="Saved from ConfExpt (CPU reserved, 3-step): "
        + ", ".join(f"{name} {spread(values):.1%}" for name, values in saved.items())
        + "; lost from ConfMin (3-step): "
        + ", ".join(_lost(found, name) for name in saved)
        + ".",
        where="sim",
        parts=parts,
        why=WHY_S2,
        figures=save_figure(
            curves(
                {
                    f"{name} {start}": {
                        policy: found[name, "3-step", start, policy][0]
                        for policy in ("static", "AUTOSCALE")
                    }
                    for name in saved
                    for start in ("ConfMin", "ConfExpt")
                }
            ),
            folder,
            "scaling-S2",
        ),
        numbers={
            "saved": {name: spread(values).pair for name, values in saved.items()},
            "lost": {
                " ".join(key): spread([one.lost_share for one in here]).pair
                for key, here in found.items()
            },
        },
    )


def _lost(found: Found, name: str) -> str:
    mine, theirs = (
        spread(one.lost_share for one in found[name, "3-step", "ConfMin", policy])
        for policy in POLICIES
    )
    return f"{name} {mine:.1%} against {theirs:.1%} static"
