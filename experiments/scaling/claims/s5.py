"""S5 (ch. 7 s. 4): losses and processors of AUTOSCALE+, learning and incremental scaling."""

from collections.abc import Mapping
from pathlib import Path

from experiments.claim import Claim, judged, save_figure
from experiments.scaling.claims.curves import curves
from experiments.scaling.trials.run import (
    OTHER_PAUSES_S,
    PAUSE_S,
    Outcome,
    shrink_of,
    trial,
)
from experiments.scaling.trials.training import trained
from experiments.scaling.workloads.streams import ERRATIC, PROGRESSIVE, Knots
from experiments.scaling.workloads.workflows import (
    ZIPF_EXPONENT,
    Dispatch,
    insensitive,
    sensitive,
    simple,
)
from experiments.statistics import clearly_below, spread
from penstock.scaling.policies.autoscale_plus import AutoscalePlus
from penstock.scaling.policies.incremental import Incremental
from penstock.scaling.policies.policy import ScalingPolicy

CHAPTER_7 = AutoscalePlus(window_s=90.0, alpha=0.3, beta=0.8)
VISIBLE = 0.001  # a smaller difference is none
Runs = Mapping[str, list[Outcome]]


def claim(folder: Path, seeds: tuple[int, ...], quick: bool) -> Claim:
    """Losses and processors of AUTOSCALE+, learning and incremental scaling."""
    even = _runs(PROGRESSIVE, False, seeds, quick, PAUSE_S)
    uneven = _runs(ERRATIC, True, seeds, quick, PAUSE_S)
    lost = {
        setting: {name: [one.lost_share for one in here] for name, here in runs.items()}
        for setting, runs in (("progressive", even), ("erratic", uneven))
    }
    units = {name: [one.units for one in here] for name, here in even.items()}
    first, second = lost["progressive"], lost["erratic"]

    def less(values: Mapping[str, list[float]], ours: str, theirs: str) -> bool:
        return clearly_below(values[ours], values[theirs], VISIBLE)

    parts = {
        "progressive: AUTOSCALE+ loses less than rlearn": less(first, "AUTOSCALE+", "rlearn"),
        "progressive: rlearn loses less than incr": less(first, "rlearn", "incr"),
        "progressive: incr uses more than AUTOSCALE+": less(units, "AUTOSCALE+", "incr"),
        "progressive: incr uses more than rlearn": less(units, "rlearn", "incr"),
        "erratic: DABS loses less than incr": less(second, "DABS", "incr"),
        "erratic: DABS loses less than AUTOSCALE+ with shuffle": less(
            second, "DABS", "AUTOSCALE+ shuffle"
        ),
    }
    paused = {
        f"pause {pause_s:g} s": {
            name: spread([one.lost_share for one in here]).pair
            for name, here in _runs(PROGRESSIVE, False, seeds, quick, pause_s).items()
        }
        for pause_s in (() if quick else OTHER_PAUSES_S)
    }
    shown = "; ".join(
        f"{setting}: "
        + ", ".join(
            f"{name} {spread([one.lost_share for one in here]):.1%} lost with "
            f"{spread([one.units for one in here])} processors"
            for name, here in runs.items()
        )
        for setting, runs in (("progressive", even), ("erratic", uneven))
    )
    return judged(
        "S5",
        paper="Losses: progressive and insensitive 7% with AUTOSCALE+, 17% with rlearn, 29% with "
        "incr, which uses 18% and 64% more processing units; erratic and sensitive 4.8% with DABS, "
        "20% with incr, and DABS is better than AUTOSCALE+ with shuffle.",
        ours=f"{shown}.",
        where="sim",
        parts=parts,
        why=_why_s5(parts),
        figures=save_figure(
            curves(
                {
                    "progressive": {name: here[0] for name, here in even.items()},
                    "erratic": {name: here[0] for name, here in uneven.items()},
                }
            ),
            folder,
            "scaling-S5",
        ),
        numbers={
            "lost": {
                f"{setting} {name}": spread(values).pair
                for setting, runs in lost.items()
                for name, values in runs.items()
            },
            "units": {name: spread(values).pair for name, values in units.items()},
            "lost_by_pause": paused,
        },
    )


def _runs(knots: Knots, biased: bool, seeds: tuple[int, ...], quick: bool, pause_s: float) -> Runs:
    """Every policy on the simple topology; biased values are balanced by OSG unless shuffled."""
    shrink = shrink_of(quick)
    service = sensitive(ZIPF_EXPONENT) if biased else insensitive()
    plus = "DABS" if biased else "AUTOSCALE+"
    balanced: Dispatch = "shared" if biased else "round-robin"
    workflow = simple(service, balanced)
    policies: dict[str, tuple[ScalingPolicy, Dispatch]] = {
        plus: (CHAPTER_7, balanced),
        "rlearn": (trained(workflow, knots, shrink), balanced),
        "incr": (Incremental(), balanced),
    }
    if biased:
        policies["AUTOSCALE+ shuffle"] = (CHAPTER_7, "round-robin")
    return {
        name: [
            trial(
                simple(service, dispatch), knots, policy, seed, workflow.minimal, shrink,
                pause_s=pause_s,
            )
            for seed in seeds
        ]
        for name, (policy, dispatch) in policies.items()
    }  # fmt: skip


def _why_s5(parts: Mapping[str, bool]) -> str:
    why = (
        " The paper's losses come from what a reconfiguration costs in Storm, which it does not "
        f"give; here a resized operator stands still for {PAUSE_S:g} s (the numbers show 5 and 30 "
        "s too), and nobody resizes while a change is under way, so a steady rise loses hardly "
        "anything under any policy."
    )
    if not parts["progressive: incr uses more than AUTOSCALE+"]:
        why += (
            " With alpha = 0.3 AUTOSCALE+ asks for three times what is busy (9), more than a step "
            "policy that keeps a load of 0.5 to 0.8."
        )
    return why
