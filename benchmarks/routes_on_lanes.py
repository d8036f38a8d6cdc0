"""What routing costs a row in the tasks of lanes on Spark.

Run: python -m benchmarks routes_on_lanes
"""

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from experiments.routing.on_spark.lanes import LaneCost
from experiments.routing.on_spark.r4 import (
    BOUNDS,
    ZIPF,
    frequency_aware_costs,
    pane_costs,
)
from experiments.routing.trials.overhead import NODES, TOP_K
from penstock.spark.run.place import build_session

TURNS = 12


def run() -> Iterator[dict[str, Any]]:
    """One row for each comparison; a ratio above 1 says ours is better."""
    with TemporaryDirectory(prefix="penstock-lanes-") as folder:
        session = build_session("lanes", "local[1]", log_file=Path(folder) / "spark.log")
        try:
            for kind in ("int64", "text"):
                yield _row(
                    f"lanes: frequency-aware, {kind} keys, Zipf {ZIPF}",
                    *frequency_aware_costs(session, kind, seed=0, turns=TURNS),
                    f"plain hashing; 16K keys, {NODES} tasks, K={TOP_K}, counting included; "
                    f"wanted: at most {BOUNDS['frequency-aware']:.0%} over it",
                )
            yield _row(
                "lanes: rate-aware panes",
                *pane_costs(session, seed=0, turns=TURNS),
                f"panes round robin; ten panes, one a jump, {NODES} tasks; wanted: at most "
                f"{BOUNDS['rate-aware panes']:.0%} over it",
            )
        finally:
            session.stop()


def _row(name: str, plain: LaneCost, ours: LaneCost, conditions: str) -> dict[str, Any]:
    return {
        "name": name,
        "baseline": plain.least_ns,
        "ours": ours.least_ns,
        "unit": "ns of lane task for each row",
        "ratio": plain.least_ns / ours.least_ns,
        "conditions": f"{conditions}; load ratio {plain.load_ratio:.0%} -> {ours.load_ratio:.0%}",
    }
