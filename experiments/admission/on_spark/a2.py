"""A2 on Spark: rows queued at streams, and latency."""

from collections.abc import Mapping
from pathlib import Path

from experiments.admission.on_spark.race import Race
from experiments.admission.on_spark.strategies import (
    ORDER,
    lateness,
    mean,
    order_parts,
    shown,
    six_workloads,
)
from experiments.claim import Claim, judged


def claim(_folder: Path, seeds: tuple[int, ...], quick: bool) -> Claim:
    """DRF-M, ARD and PAR on the six workloads."""
    return judge(six_workloads(seeds, quick))


def judge(races: Mapping[str, list[Race]]) -> Claim:
    """What these races show."""
    queued = {w: {n: mean(races[w], "queued", n) for n in ORDER} for w in races}
    latency = {w: {n: mean(races[w], "latency", n) for n in ORDER} for w in races}
    parts = {f"queued rows: {name}": holds for name, holds in order_parts(queued).items()}
    parts |= {f"latency: {name}": holds for name, holds in order_parts(latency).items()}
    return judged(
        "A2",
        paper="rows held back at clients and delay: DRF-M <= ARD < PAR on every workload",
        ours=f"rows queued at streams after a batch: {shown(queued, '.0f')}; seconds from "
        f"arrival to the end of the batch: {shown(latency, '.2f')}",
        where="spark",
        parts=parts,
        why="A redirection takes effect between two batches and holds nothing back here, so that "
        "what is queued shows which lanes were too full, not how many streams moved. A batch asks "
        "one source after the other, so that each finds rows of some 30 ms more: their latencies "
        "say nothing about strategies. "
        f"{lateness(races)}: where many are late, lanes had less than their capacity.",
        numbers={"queued_rows": queued, "latency_s": latency},
    )
