"""The price foretold for a fusion beside the one measured: rows, bytes and time of a batch.

Each topology runs unfused, which foretells, and fused, in turns that alternate which goes first:
linear road, two chained aggregations, and three topologies drawn at random, chains of two to four
with and without a branch. `fusion_price:others` runs four other random ones.
"""

import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from pyspark.sql import DataFrame, SparkSession

from benchmarks._sessions import SETTINGS, embedded_session
from benchmarks.fusion_on_spark import CHAIN, ROAD, chain, road, stream
from penstock.fusion.price import Price, measured_price
from penstock.model.observation import Observation
from penstock.model.plan_document import Group
from penstock.model.sinks import Memory
from penstock.model.topology import Topology
from penstock.spark.compile.fused import PlanChoice
from penstock.spark.measure.together import SparkMeasurer
from penstock.spark.run.slow_loop import SlowLoop
from penstock.spark.run.together import Pace, RunningTopology

RATE_PER_S = 6_000
WITHIN = 0.2
BATCHES = 10  # of a run; the first of each is not counted
WARM_UPS = 1  # turns of one run each, unfused and fused, in which Spark compiles both
TURNS = 4  # that count
SPARE = 2  # turns more, for those of which nothing was measured
SEEDS = {"random": (1, 2, 3), "others": (6, 8, 9, 11)}
ONE = "random {}"
CASES = (
    "linear road",
    "chain",
    *SEEDS,
    *(ONE.format(n) for seeds in SEEDS.values() for n in seeds),
)
PERIOD_S = 1.0
COLUMNS = {"a": "key", "b": "key % 500", "c": "key % 40"}


def run(case: str = "") -> Iterator[dict[str, Any]]:
    """A line for each figure of each topology; the baseline is what was foretold."""
    with embedded_session() as session:
        for name, topology, groups in workloads(case):
            turns = _turns(name, topology, session, groups)
            for figure, unit in (("rows", "rows"), ("size_bytes", "B"), ("batch_s", "s")):
                figures = np.array([[getattr(one, figure) for one in turn] for turn in turns])
                now, expected, came = np.median(figures, axis=0)
                ratios = figures[:, 1] / figures[:, 2]
                yield {
                    "name": f"fusion foretold: {figure} of a batch, {name}",
                    "baseline": round(expected, 3),
                    "ours": round(came, 3),
                    "unit": unit,
                    "ratio": round(expected / came, 3),
                    "conditions": f"baseline: foretold from unfused runs ({now:.4g} there), ours: "
                    f"measured fused; within {WITHIN:.0%}: {abs(expected / came - 1) <= WITHIN}; "
                    f"medians of {TURNS} turns, whose ratios are {ratios.min():.2f} to "
                    f"{ratios.max():.2f}; {RATE_PER_S:,} rows/s, {SETTINGS.key_groups} key groups, "
                    f"{SETTINGS.slots} slots",
                }


Turn = tuple[Price, Price, Price]  # unfused, foretold for fused, and fused


def _turns(
    name: str, topology: Topology, session: SparkSession, groups: tuple[Group, ...]
) -> list[Turn]:
    """A run of each kind next to each other in time, each kind first in every other turn."""
    counted: list[Turn] = []
    for number in range(WARM_UPS + TURNS + SPARE):
        foretold: list[tuple[Price, Price]] = []
        seen: list[Observation] = []
        for fused in (True, False) if number % 2 else (False, True):
            observed = watched(topology, session, groups, None if fused else foretold)
            seen = observed if fused else seen
        measured = measured_price(seen)
        # A short run may end before anything of it is measured.
        if number >= WARM_UPS and foretold and measured is not None:
            counted.append((*foretold[0], measured))
        if len(counted) == TURNS:
            return counted
    raise RuntimeError(f"{name}: measured in {len(counted)} turns, {TURNS} are wanted")


def workloads(case: str) -> Iterator[tuple[str, Topology, tuple[Group, ...]]]:
    """By name, with what is fused."""
    if case in ("", "linear road"):
        yield "linear road", road(RATE_PER_S, BATCHES), ROAD
    if case in ("", "chain"):
        yield "chain", chain(RATE_PER_S, BATCHES), CHAIN
    for kind, seeds in SEEDS.items():
        for seed in seeds:
            if case in (kind, ONE.format(seed)) or (not case and kind == "random"):
                yield ONE.format(seed), *drawn(seed)


def drawn(seed: int) -> tuple[Topology, tuple[Group, ...]]:
    """Aggregations, each by some of the columns of the one before; maybe with a branch."""
    random = np.random.default_rng(seed)
    made = Topology(f"drawn{seed}", max_latency="60s")
    made.source("rows", stream(RATE_PER_S, BATCHES))
    columns = ", ".join(f"{text} AS {name}" for name, text in COLUMNS.items())
    made.add("cut", f"SELECT {columns}, value, at FROM rows", "rows")
    key, names = tuple(COLUMNS), list[str]()
    for number in range(int(random.integers(2, 5))):
        if len(key) > 1 and number:
            drawn_key = random.choice(key, len(key) - int(random.integers(0, 2)), False)
            key = tuple(sorted(map(str, drawn_key)))
        name = f"step{number}"
        made.add(name, _step(key, first=not names), names[-1] if names else "cut")
        names.append(name)
    made.sink("out", names[-1], Memory())
    if random.random() < 0.5:
        made.add("branch", _step(key, first=True), "cut")
        made.sink("branched", "branch", Memory())
        names.append("branch")
    return made, (Group(tuple(names), key),)


def _step(key: tuple[str, ...], first: bool) -> Any:
    columns = ", ".join(key)

    def step(rows: DataFrame) -> DataFrame:
        timed = rows.withWatermark("at", "1 second") if first else rows
        of, n = ("at", "count(*)") if first else ("window", "sum(n)")
        text = f"""SELECT {columns}, window({of}, '1 second') AS window, {n} AS n,
                          max(value) AS value
                   FROM {{timed}} GROUP BY {columns}, window({of}, '1 second')"""
        return timed.sparkSession.sql(text, timed=timed)

    return step


def watched(
    topology: Topology, session: SparkSession, groups: tuple[Group, ...],
    foretold: list[tuple[Price, Price]] | None,
) -> list[Observation]:  # fmt: skip
    """Run fused, or unfused where a price is to be foretold, and observe; the first is left out."""
    choice = PlanChoice(groups if foretold is None else ())
    with (
        tempfile.TemporaryDirectory(prefix="penstock-bench-") as folder,
        RunningTopology(
            topology, session, Path(folder) / "c", Pace(once=True), choice=choice
        ) as ran,
    ):
        measurer, seen = SparkMeasurer(ran), list[Observation]()
        while ran.active:
            time.sleep(PERIOD_S)
            seen += [one for one in [measurer.observe()] if one is not None and one.batches]
        ran.settle()
        ran.raise_failure()
        seen += [one for one in [measurer.observe()] if one is not None and one.batches]
        if foretold is not None and groups:
            prices = SlowLoop(ran.built, lambda _: None).prices(seen[1:] or seen, groups)
            foretold += [prices] if prices is not None else []
    return seen[1:] or seen
