"""A4 (Fig. 11): lanes above the fewest there could be."""

from pathlib import Path

from experiments.admission.claims.by_workload import bars, shown, tables
from experiments.admission.trials.strategies import (
    ORDER,
    Outcomes,
    outcomes,
)
from experiments.admission.workloads.streams import WORKLOADS
from experiments.claim import Claim, judged

ABOUT = 0.05  # what "about" and "near" may be off, as a share of the fewest lanes
TRENDS = ("ptfcw", "tfvar")


def claim(folder: Path, seeds: tuple[int, ...], quick: bool) -> Claim:
    """Every strategy on every workload."""
    found = outcomes(seeds, quick)
    above = {
        workload: {name: found.mean("above_fewest", workload, name) for name in ORDER}
        for workload in WORKLOADS
    }
    parts = {f"{w}: par near 0": above[w]["par"] <= ABOUT for w in WORKLOADS}
    parts |= {f"{w}: drf about 15%": abs(above[w]["drf"] - 0.15) <= ABOUT for w in TRENDS}
    parts |= {f"{w}: drf-m at most about 15%": above[w]["drf-m"] <= 0.15 + ABOUT for w in WORKLOADS}
    parts |= {
        f"{w}: drf-m at most 10 points above {name}": above[w]["drf-m"] <= above[w][name] + 0.10
        for w in WORKLOADS
        for name in ORDER[1:-1]
    }
    return judged(
        "A4",
        paper="lanes above the optimum: PAR near 0, DRF about 15% on trend workloads, DRF-M about "
        "15% at most and 5 to 10 points above the others at most",
        ours=shown(found, "above_fewest", ".1%") + " above a proven lower bound",
        where="sim",
        parts=parts,
        why="Room is kept for the most each stream is expected to need within the horizon. For "
        f"DRF-M that is more than what came, by {_room_kept(found)}.",
        figures=bars(found, folder, "admission-A4", {"above_fewest": "lanes above the fewest"}),
        numbers={
            "room_kept": found.table("room_kept"),
            **tables(found, "above_fewest"),
        },
    )


def _room_kept(outcomes: Outcomes) -> str:
    # Adding zero takes the sign off a share that rounds to none.
    kept = {w: round(outcomes.mean("room_kept", w, "drf-m"), 2) + 0.0 for w in WORKLOADS}
    return ", ".join(f"{share:.0%} on {workload}" for workload, share in kept.items())
