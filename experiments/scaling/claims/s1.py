"""S1 (ch. 5 s. 6.1): consistency checked by GAL, by local history, or not at all."""

from pathlib import Path

from experiments.claim import Claim, judged, save_figure
from experiments.scaling.claims.curves import curves
from experiments.scaling.trials.run import OTHER_PAUSES_S, PAUSE_S, Outcome, shrink_of, trial
from experiments.scaling.workloads.streams import WAVES
from experiments.scaling.workloads.workflows import (
    heterogeneous,
)
from experiments.statistics import spread
from penstock.scaling.policies.autoscale import Autoscale

VARIANTS = {"GAL": "gal", "LocalOnly": "local", "Straight": "straight"}
ALMOST_ALL = 0.8


def claim(folder: Path, seeds: tuple[int, ...], quick: bool) -> Claim:
    """Consistency checking by GAL, by local history only, by the kind of action."""
    workflow, shrink = heterogeneous(), shrink_of(quick)

    def runs(variant: str, pause_s: float) -> list[Outcome]:
        policy = Autoscale(variant=variant)
        return [
            trial(workflow, WAVES, policy, seed, workflow.minimal, shrink, pause_s=pause_s)
            for seed in seeds
        ]

    found = {name: runs(variant, PAUSE_S) for name, variant in VARIANTS.items()}
    latency = {n: spread(one.latency_s for one in here).mean for n, here in found.items()}
    resizes = {n: spread(map(_resizes, here)).mean for n, here in found.items()}
    late = {n: spread(one.lost_share for one in here).mean for n, here in found.items()}
    filters = {name: max(one.most["FastFilter"] for one in here) for name, here in found.items()}
    parts = {
        "GAL has the lowest latency": latency["GAL"]
        < min(latency["LocalOnly"], latency["Straight"]),
        "Straight resizes most": resizes["Straight"] > max(resizes["GAL"], resizes["LocalOnly"]),
        "elements later than 30 s happen almost only with Straight": late["Straight"]
        >= ALMOST_ALL * sum(late.values()),
        "FastFilter keeps one task under GAL and LocalOnly": filters["GAL"]
        == 1
        == filters["LocalOnly"],
    }
    paused = {
        f"pause {pause_s:g} s": {
            name: spread([one.lost_share for one in runs(variant, pause_s)]).pair
            for name, variant in VARIANTS.items()
        }
        for pause_s in (() if quick else OTHER_PAUSES_S)
    }
    why = (
        " How much is late is decided by what a resize costs "
        f"(an operator stands still for {PAUSE_S:g} s here; the numbers show other pauses too)."
    )
    return judged(
        "S1",
        paper="With one slow operator before and one behind a fast filter, GAL has the lowest "
        "latency; Straight reconfigures most, and elements later than 30 s happen almost only with "
        "it; FastFilter never needs a second task under LocalOnly or GAL.",
        ours="; ".join(
            f"{name}: {spread([one.latency_s for one in here])} s, "
            f"{spread(map(_resizes, here))} resizes, "
            f"{spread([one.lost_share for one in here]):.1%} late, FastFilter up to "
            f"{filters[name]}"
            for name, here in found.items()
        )
        + ".",
        where="sim",
        parts=parts,
        why=why,
        figures=save_figure(
            curves({"heterogeneous": {name: here[0] for name, here in found.items()}}),
            folder, "scaling-S1",
        ),
        numbers={"late_by_pause": paused},
    )  # fmt: skip


def _resizes(one: Outcome) -> float:
    return float(sum(one.resizes.values()))
