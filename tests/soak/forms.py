"""The topologies that are soaked, one a leg; program and verifier make the same.

Most are one stream of rows, as they are and aggregated, in several forms: fused, as declared,
apart with channels between the queries, in sliding windows of Penstock's own, joined with itself,
and fused on a cluster of two hosts between which the network can be cut.
`loop` is frequent patterns, whose middle query reads what it wrote. Of files, Redis and Kafka rows
are numbered by whoever writes them, and are to come out in order.
"""

from collections.abc import Callable
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from pyspark.cloudpickle import register_pickle_by_value

from brokers import broker_run
from penstock.config import Settings
from penstock.model.plan_document import Group
from penstock.model.route import Route
from penstock.model.sinks import Files
from penstock.model.topology import Topology
from penstock.spark.run.place import Place
from penstock.workloads.profiles import constant
from soak import load

if TYPE_CHECKING:
    from examples.patterns import Tweets

WATERMARK_S, WINDOW_S, SLIDE_S = 1, 2, 1
PLAN = (Group(("by_key", "by_window"), ("bucket",)),)
ON_HOSTS, HOSTS = "hosts", 2
GENERATED = ("fused", "plain", "apart", "windowed", "joined", ON_HOSTS)
WRITTEN = ("files", "redis", "kafka")
FORMS = (*GENERATED, "loop", *WRITTEN)

TWEETS_PER_S, THRESHOLD = 20.0, 12


@cache
def patterns() -> ModuleType:
    """The topology of the loop, which brings pandas along; the other forms start without it."""
    from examples import patterns as found

    register_pickle_by_value(found)  # workers cannot import examples
    return found


def all_tweets() -> "Tweets":
    """What the loop reads."""
    made: Tweets = patterns().Tweets(items=20, window=300)
    return made


def tweets(length_s: float) -> int:
    """How many there are in a leg of the loop."""
    return int(TWEETS_PER_S * (length_s + load.TAIL_S))


def topology(
    form: str, directory: Path, seed: int, length_s: float, mean_per_s: float, once: bool
) -> Topology:
    """What runs in a leg, below its directory."""
    if form in WRITTEN:
        admission = broker_run.AT_LAST if once else broker_run.ADMISSION
        return broker_run.topology(directory, admission, directory.parent)
    if form == "loop":
        made: Topology = patterns().frequent_patterns(
            constant(TWEETS_PER_S), Files(str(directory / "patterns")), tweets=all_tweets(),
            rows=tweets(length_s), threshold=THRESHOLD, max_rows=250, max_latency="20s",
        )  # fmt: skip
        return made
    made = Topology("soaked", max_latency="10s")
    streams = load.streams(seed, length_s, mean_per_s)
    declared = directory / "streams.toml"
    declared.write_text(load.declaration(streams), encoding="utf-8")
    route = Route("frequency-aware", key="key", partitions=4, top_k=10, period="4s", follow=True)
    made.source("rows", load.source(streams, str(declared), mean_per_s), route=route)
    made.add("placed", "SELECT *, key % 8 AS bucket FROM rows", upstream="rows")
    made.sink("raw", "placed", Files(str(directory / "raw")))
    _behind(form)(made)
    if form != "joined":
        made.sink("windows", "by_window", Files(str(directory / "windows")))
    else:
        made.sink("pairs", "paired", Files(str(directory / "pairs")))
    return made


def _behind(form: str) -> Callable[[Topology], None]:
    return {"windowed": _windowed, "joined": _joined}.get(form, _aggregated)


def _aggregated(made: Topology) -> None:
    """Two chained aggregations, which can share a component."""

    @made.operator("placed", key=["bucket"])
    def by_key(placed: Any) -> Any:
        timed = placed.withWatermark("at", f"{WATERMARK_S} seconds")
        text = f"""SELECT bucket, key, window, count(*) AS n, sum(row) AS total FROM {{timed}}
                   GROUP BY bucket, key, window(at, '{WINDOW_S} seconds')"""
        return timed.sparkSession.sql(text, timed=timed)

    made.add(
        "by_window",
        f"""SELECT bucket, window(window, '{WINDOW_S} seconds').start AS since, sum(n) AS n,
                   count(*) AS keys, sum(total) AS total
            FROM by_key GROUP BY bucket, window(window, '{WINDOW_S} seconds')""",
        upstream="by_key",
        key=["bucket"],
    )


def _windowed(made: Topology) -> None:
    from penstock import window_aggregate  # brings pandas along

    @made.operator("placed")
    def by_window(placed: Any) -> Any:
        found = window_aggregate(
            placed.withWatermark("at", f"{WATERMARK_S} seconds"), by="bucket",
            window=f"{WINDOW_S}s", slide=f"{SLIDE_S}s",
            aggregates={"n": "count", "total": "sum(row)"},
        )  # fmt: skip
        return found.selectExpr("bucket", "window.start AS since", "n", "total")


def _joined(made: Topology) -> None:
    """Every row meets itself: both sides of the join hold state."""

    @made.operator("placed")
    def paired(placed: Any) -> Any:
        timed = placed.withWatermark("at", f"{WATERMARK_S} seconds")
        left = timed.selectExpr("stream AS name", "row AS number", "at AS moment", "bucket")
        right = timed.selectExpr("stream", "row", "at", "key", "value")
        same = "name = stream AND number = row AND moment = at"
        from pyspark.sql.functions import expr

        return left.join(right, expr(same)).select("stream", "row", "key", "value", "bucket")


def settings(form: str, directory: Path) -> Settings:
    """Restless on purpose: executors and key groups are to change as often as they may."""
    apart = form in ("apart", "loop")
    return Settings(
        period_s=2.0, policy="static" if apart else "incremental",
        executors_min=2 if apart else 1, executors_max=2 if apart else 3, slots=1,
        key_groups=2, executor_memory_mb=512, history=str(directory / "history.sqlite"),
        cooldown_out_s=4.0, cooldown_in_s=8.0,
        policy_options={} if apart else {"min_ratio": 0.2, "max_ratio": 0.35},
        allocation=None if apart or form in WRITTEN else "milp",
        allocation_tolerance=0.0,
    )  # fmt: skip


def place(form: str, master: str, directory: Path, once: bool) -> Place:
    """Where it runs."""
    return Place(
        master, directory / "checkpoint", directory.parent / "spark.log", once=once,
        plan=PLAN if form in ("fused", ON_HOSTS) else None, apart=form in ("apart", "loop"),
    )  # fmt: skip
