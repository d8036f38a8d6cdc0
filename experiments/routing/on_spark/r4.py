"""R4 on Spark: what routing costs a row in a lane's task, from the file to the exchange."""

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
from matplotlib.figure import Figure
from pyspark.sql import SparkSession

from experiments.claim import Claim, judged, save_figure
from experiments.on_spark import reporter, spark_session
from experiments.routing.claims.r4 import BOUNDS, PAPER, ZIPF
from experiments.routing.on_spark import lanes
from experiments.routing.on_spark.lanes import LaneCost
from experiments.routing.trials.overhead import NODES, TOP_K, position_reports, timed_batch
from experiments.statistics import spread
from penstock.model.route import Route

_KINDS = {"int64": "BIGINT", "text": "STRING"}
_REST = "vehicle BIGINT, long DOUBLE, lat DOUBLE, speed DOUBLE"
_TIMED = {"time": "time", "window": "2s", "slide": "1s", "partitions": NODES}
Pair = tuple[LaneCost, LaneCost]
TURNS, QUICK_TURNS = 6, 3


def claim(folder: Path, seeds: Sequence[int], quick: bool) -> Claim:
    """In a session of its own."""
    with spark_session("routing-R4", "local[1]") as session:
        return judge(session, folder, seeds, QUICK_TURNS if quick else TURNS, reporter("routing"))


def judge(
    session: SparkSession,
    folder: Path,
    seeds: Sequence[int],
    turns: int,
    say: Callable[[str], None],
) -> Claim:
    """Cost of a row above the baselines, in the lanes' tasks."""
    found: dict[str, list[Pair]] = {}
    for seed in seeds:
        for kind in _KINDS:
            say(f"R4, {kind} keys, seed {seed}")
            costs = frequency_aware_costs(session, kind, seed, turns)
            found.setdefault(f"frequency-aware, {kind} keys", []).append(costs)
        say(f"R4, panes, seed {seed}")
        found.setdefault("rate-aware panes", []).append(pane_costs(session, seed, turns))
    extra = {
        name: spread(ours.least_ns / plain.least_ns - 1 for plain, ours in some)
        for name, some in found.items()
    }
    plain_ns = {name: spread(plain.least_ns for plain, _ in some) for name, some in found.items()}
    figure = _figure(found)
    shown = "; ".join(f"{n} {extra[n]:.1%} over {plain_ns[n]:.0f} ns a row" for n in found)
    return judged(
        "R4",
        paper=PAPER,
        ours=f"In lanes on Spark, Zipf {ZIPF}, {NODES} tasks: {shown}.",
        where="spark",
        parts={
            f"{name} at most {bound:.0%}": extra[name].mean <= bound
            for name in found
            for start, bound in BOUNDS.items()
            if name.startswith(start)
        },
        figures=save_figure(figure, folder, "routing-R4-spark"),
        numbers={
            "extra": {name: extra[name].pair for name in found},
            "plain_ns": {name: plain_ns[name].pair for name in found},
            "load_ratio": {
                name: [[plain.load_ratio, ours.load_ratio] for plain, ours in some]
                for name, some in found.items()
            },
        },
    )


def frequency_aware_costs(session: SparkSession, kind: str, seed: int, turns: int) -> Pair:
    """Plain hashing, and frequency-aware routes with counting for the next table."""
    rng = np.random.default_rng(seed)
    rows = pa.Table.from_batches([position_reports(ZIPF, kind, rng)])
    routes = [
        Route("hash", key="key", partitions=NODES),
        Route("frequency-aware", key="key", partitions=NODES, top_k=TOP_K),
    ]
    columns = f"key {_KINDS[kind]}, {_REST}"
    plain, ours = lanes.lane_costs(session, routes, rows, rows, columns, turns, times=6)
    return plain, ours


def pane_costs(session: SparkSession, seed: int, turns: int) -> Pair:
    """Panes in turn, and rate-aware; ten panes of which one is a jump, after 64 even ones."""
    rng = np.random.default_rng(seed)
    steady = timed_batch(np.full(4 * NODES, 20_000), 0, rng)
    measured = timed_batch(None, 4 * NODES, rng)
    routes = [Route("panes", **_TIMED), Route("rate-aware-panes", **_TIMED)]  # type: ignore[arg-type]
    plain, ours = lanes.lane_costs(
        session, routes, pa.Table.from_batches([steady]), pa.Table.from_batches([measured]),
        f"time BIGINT, {_REST}", turns, times=2,
    )  # fmt: skip
    return plain, ours


def _figure(found: dict[str, list[Pair]]) -> Figure:
    figure = Figure(figsize=(8, 4))
    axes = figure.subplots()
    places = np.arange(len(found))
    for shift, which, label in ((-0.2, 0, "baseline"), (0.2, 1, "ours")):
        costs = [spread(one[which].least_ns for one in some) for some in found.values()]
        axes.bar(
            places + shift, [c.mean for c in costs], 0.4, yerr=[c.deviation for c in costs],
            label=label,
        )  # fmt: skip
    axes.set_xticks(places, list(found))
    axes.set_ylabel("ns of lane task for each row")
    axes.legend()
    return figure
