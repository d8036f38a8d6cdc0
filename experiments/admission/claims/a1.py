"""A1 (Fig. 10a): redirections in a period."""

from pathlib import Path

import numpy as np

from experiments.admission.claims.by_workload import bars, order_parts, rates_moved, shown, tables
from experiments.admission.trials.strategies import (
    ORDER,
    STREAMS,
    UNDRAINED,
    Outcomes,
    outcomes,
)
from experiments.admission.workloads.streams import WORKLOADS
from experiments.claim import Claim, judged


def claim(folder: Path, seeds: tuple[int, ...], quick: bool) -> Claim:
    """Every strategy on every workload."""
    found = outcomes(seeds, quick)
    parts = order_parts(found, "redirected")
    for workload in WORKLOADS:
        moved = found.mean("redirected", workload, "par")
        parts[f"{workload}: par moves most of {STREAMS}"] = moved > STREAMS / 2
    return judged(
        "A1",
        paper="mean redirections in a period: DRF-M <= DRF <= ARD <= ARI < PAR on every workload, "
        "and PAR moves most of the 80 streams",
        ours=shown(found, "redirected", ".2f"),
        where="sim",
        parts=parts,
        why="Streams leave by their rise, not by their rate, so the slower ones leave and more "
        f"must ({rates_moved(found)}). Draining lanes is most of it where the total "
        f"varies: {_without_draining(found)}. In return lanes are late less often "
        f"({_late(found)}).",
        figures=bars(found, folder, "admission-A1", {"redirected": "redirections per period"}),
        numbers=tables(found, "redirected"),
    )


def _without_draining(outcomes: Outcomes) -> str:
    return "; ".join(
        f"{w} without it "
        + ", ".join(f"{n} {outcomes.mean('redirected', w, n, UNDRAINED):.2f}" for n in ORDER[:3])
        for w in ("sfvar", "tfvar")
    )


def _late(outcomes: Outcomes) -> str:
    shares = {
        name: float(np.mean([outcomes.mean("late_share", w, name) for w in WORKLOADS]))
        for name in ORDER
    }
    return "time beyond the bound: " + ", ".join(f"{n} {share:.0%}" for n, share in shares.items())
