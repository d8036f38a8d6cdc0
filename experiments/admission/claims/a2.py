"""A2 (Fig. 10b and 10c): rows buffered at clients, and delay of the streams redirected."""

from pathlib import Path

from experiments.admission.claims.by_workload import bars, order_parts, shown, tables
from experiments.admission.trials.strategies import (
    outcomes,
)
from experiments.claim import Claim, judged


def claim(folder: Path, seeds: tuple[int, ...], quick: bool) -> Claim:
    """Every strategy on every workload."""
    found = outcomes(seeds, quick)
    parts = {
        f"{measure}: {name}": holds
        for measure in ("buffered_rows", "delay_s")
        for name, holds in order_parts(found, measure).items()
    }
    panels = {"buffered_rows": "rows buffered per period", "delay_s": "delay added per period, s"}
    return judged(
        "A2",
        paper="rows buffered at clients and delay added by redirections: the order of A1",
        ours=f"rows {shown(found, 'buffered_rows', '.0f')}; seconds "
        f"{shown(found, 'delay_s', '.2f')}",
        where="sim",
        parts=parts,
        why="Both weigh each redirection of A1 with the queue of the lane it leaves, and the "
        "rows also with the stream's rate.",
        figures=bars(found, folder, "admission-A2", panels),
        numbers={
            "late_share": found.table("late_share"),
            **tables(found, "buffered_rows"),
            **tables(found, "delay_s"),
        },
    )
