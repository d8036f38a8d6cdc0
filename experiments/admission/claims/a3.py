"""A3: meta-data pays where forecasts do not."""

from pathlib import Path

from experiments.admission.claims.by_workload import rates_moved
from experiments.admission.trials.strategies import (
    outcomes,
)
from experiments.claim import Claim, judged

UNSEEN = ("psfcw", "sfvar", "bursty")  # where forecasts cannot see it coming


def claim(folder: Path, seeds: tuple[int, ...], quick: bool) -> Claim:
    """Every strategy on every workload."""
    del folder  # nothing to draw
    found = outcomes(seeds, quick)
    parts = {
        workload: found.mean("redirected", workload, "drf-m")
        < found.mean("redirected", workload, "drf")
        for workload in UNSEEN
    }
    shown = "; ".join(
        f"{workload}: drf-m {found.spread('redirected', workload, 'drf-m'):.2f}, drf "
        f"{found.spread('redirected', workload, 'drf'):.2f}, with lanes above the "
        f"fewest {found.mean('above_fewest', workload, 'drf-m'):.0%} and "
        f"{found.mean('above_fewest', workload, 'drf'):.0%}"
        for workload in UNSEEN
    )
    return judged(
        "A3",
        paper="DRF-M redirects strictly fewer than DRF on psfcw, sfvar and bursty",
        ours=shown,
        where="sim",
        parts=parts,
        why="DRF-M keeps fewer lanes than DRF, and the streams that are to rise most are those "
        f"that are slow now, so that more must leave ({rates_moved(found)}).",
    )
