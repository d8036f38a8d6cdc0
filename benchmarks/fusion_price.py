"""The price foretold for a fusion beside the one measured: rows, bytes and time of a batch.

Each topology runs unfused, which foretells, and then fused: linear road, two chained aggregations,
and three topologies drawn at random, chains of two to four with and without a branch.
"""

import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median
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
TURNS = 2  # unfused and fused one after the other, after a first that is not counted
SPARE = 2  # turns more, for those of which nothing was measured
SEEDS = (1, 2, 3)
CASES = ("linear road", "chain", "random")
PERIOD_S = 1.0
COLUMNS = {"a": "key", "b": "key % 500", "c": "key % 40"}


def run(case: str = "") -> Iterator[dict[str, Any]]:
    """A line for each figure of each topology; the baseline is what was foretold."""
    with embedded_session() as session:
        for name, topology, groups in workloads():
            if not name.startswith(case):
                continue
            told, found = list[Price](), list[Price]()
            for turn in range(1 + TURNS + SPARE):
                foretold: list[Price] = []
                watched(topology, session, groups, foretold)
                measured = measured_price(watched(topology, session, groups, None))
                # The first compiles; a short run may end before anything of it is measured.
                if turn and foretold and measured is not None:
                    told.append(foretold[0])
                    found.append(measured)
                if len(told) == TURNS:
                    break
            if len(told) < TURNS:
                raise RuntimeError(f"{name}: in {len(told)} of {1 + TURNS + SPARE} turns measured")
            for figure, unit in (("rows", "rows"), ("size_bytes", "B"), ("batch_s", "s")):
                expected, came = (
                    median(getattr(one, figure) for one in prices) for prices in (told, found)
                )
                yield {
                    "name": f"fusion foretold: {figure} of a batch, {name}",
                    "baseline": round(expected, 3),
                    "ours": round(came, 3),
                    "unit": unit,
                    "ratio": round(expected / came, 3),
                    "conditions": f"baseline: foretold from unfused runs, ours: measured fused; "
                    f"within {WITHIN:.0%}: {abs(expected / came - 1) <= WITHIN}; {RATE_PER_S:,} "
                    f"rows/s, {SETTINGS.key_groups} key groups, {SETTINGS.slots} slots, median of "
                    f"{TURNS} turns",
                }


def workloads() -> Iterator[tuple[str, Topology, tuple[Group, ...]]]:
    """By name, with what is fused."""
    yield "linear road", road(RATE_PER_S), ROAD
    yield "chain", chain(RATE_PER_S), CHAIN
    for seed in SEEDS:
        yield f"random {seed}", *drawn(seed)


def drawn(seed: int) -> tuple[Topology, tuple[Group, ...]]:
    """Aggregations, each by some of the columns of the one before; maybe with a branch."""
    random = np.random.default_rng(seed)
    made = Topology(f"drawn{seed}", max_latency="60s")
    made.source("rows", stream(RATE_PER_S))
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
    foretold: list[Price] | None,
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
            foretold += [prices[1]] if prices is not None else []
    return seen[1:] or seen
