"""What collocation is worth on Spark: 0 against 100% of bytes between key groups that stay at home.

Two aggregations behind shuffles of the same key, so that each key group sends to one only. Apart,
each pair is on two executors; together, on one; half of all work is on either executor both times.
"""

import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from statistics import mean
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from benchmarks._hosts import cluster_of_hosts
from penstock.control.actions import Move
from penstock.errors import Unavailable
from penstock.spark import handles
from penstock.spark.act.executors import executor_settings
from penstock.spark.act.placement import Placement
from penstock.spark.cluster.embedded import EmbeddedCluster
from penstock.spark.run.place import build_session

EXECUTORS, GROUPS = 2, 4
ROWS, KEYS = 20_000, 20_000  # in a batch; so many keys that nearly every row is passed on
TURNS, BATCHES, SETTLING = 3, 5, 1
MEMORY_MB = 768
CASES = ("one-host", "two-hosts")


@dataclass(frozen=True)
class Turn:
    """The batches of one placement: means of each."""

    batch_s: float
    task_s: float
    cpu_s: float  # of tasks, whatever else the machine does
    wait_s: float  # of tasks, for blocks of other hosts
    remote_mb: float
    read_mb: float
    together: float  # share of pairs of key groups that were on one executor


def run(case: str = "") -> Iterator[dict[str, Any]]:
    """On one host, and on hosts of their own where that can be had."""
    for name, hosts in zip(CASES, (1, EXECUTORS), strict=True):
        if case not in ("", name):
            continue
        where = name.replace("-", " ")
        try:
            turns = _measured(hosts)
        except Unavailable as reason:
            print(f"{where}: {reason}")
            continue
        apart, together = (
            [turn for number, turn in enumerate(turns) if number % 2 == side] for side in (0, 1)
        )
        for figure, unit in (("batch_s", "s"), ("task_s", "s"), ("cpu_s", "s"),
                             ("wait_s", "s"), ("remote_mb", "MB")):  # fmt: skip
            old, new = (mean(getattr(t, figure) for t in side) for side in (apart, together))
            yield {
                "name": f"collocation, {where}: {figure.rpartition('_')[0]} of a batch",
                "baseline": round(old, 4),
                "ours": round(new, 4),
                "unit": unit,
                "ratio": round(old / new, 3) if new else float("nan"),
                "conditions": f"baseline: {_together(apart):.0%} of pairs collocated, ours: "
                f"{_together(together):.0%}; {ROWS:,} rows and "
                f"{mean(t.read_mb for t in turns):.1f} MB read from shuffles a batch, {TURNS} "
                f"turns of {BATCHES} batches each, {EXECUTORS} executors of 1 slot",
            }


def _together(turns: list[Turn]) -> float:
    return mean(turn.together for turn in turns)


def _measured(hosts: int) -> list[Turn]:
    with ExitStack() as ending:
        folder = Path(ending.enter_context(tempfile.TemporaryDirectory(prefix="penstock-bench-")))
        cluster: dict[str, str]
        if hosts == 1:
            embedded = ending.enter_context(EmbeddedCluster(EXECUTORS, MEMORY_MB * EXECUTORS))
            cluster = {**embedded.settings}
        else:
            cluster = ending.enter_context(cluster_of_hosts(hosts, 1, MEMORY_MB))
        extra = {
            **cluster,
            **executor_settings(EXECUTORS, EXECUTORS),
            "spark.executor.memory": f"{MEMORY_MB}m",
        }
        session = build_session(
            "collocation", cluster["spark.master"], key_groups=GROUPS,
            log_file=folder / "spark.log", extra=extra,
        )  # fmt: skip
        ending.callback(session.stop)
        query = _start(session, folder)
        ending.callback(query.stop)
        placement = Placement(session, query)
        placement.watch()
        ending.callback(placement.close)
        _until(lambda: len(placement.observe()) == 2, query)
        nodes = sorted(handles.active_executor_ids(session))
        assert len(nodes) == EXECUTORS, nodes
        _turn(session, query, placement, nodes, 0)  # warms up
        return [_turn(session, query, placement, nodes, 1 - n % 2) for n in range(2 * TURNS)]


def _turn(
    session: SparkSession, query: StreamingQuery, placement: Placement, nodes: list[str], shift: int
) -> Turn:
    """Place the second part as the first, or shifted by a node, and look at some batches."""
    first, *_ = sorted(placement.components)
    placement.move([
        Move(name, group, nodes[(group + (0 if name == first else shift)) % len(nodes)])
        for name in placement.components
        for group in range(GROUPS)
    ])  # fmt: skip
    begin = _batch(query) + SETTLING
    _until(lambda: _batch(query) >= begin + BATCHES, query)
    wanted = range(begin + 1, begin + BATCHES + 1)
    took_s = [
        p.durationMs["triggerExecution"] / 1e3 for p in query.recentProgress if p.batchId in wanted
    ]
    jobs = handles.jobs_of_group(session, str(query.runId))
    ids = tuple(stage for job in jobs if job.batch_id in wanted for stage in job.stage_ids)
    tasks = [
        handles.stage_tasks(session, stage.id, stage.attempt)
        for stage in handles.stages(session, ids)
    ]

    def of_batch(column: str) -> float:
        return sum(float(getattr(stage, column).sum()) for stage in tasks) / len(took_s)

    remote, local = of_batch("shuffle_remote_bytes"), of_batch("shuffle_local_bytes")
    one, other = (held.node for held in placement.observe().values())
    return Turn(
        mean(took_s), of_batch("run_time_ms") / 1e3, of_batch("cpu_time_ns") / 1e9,
        of_batch("fetch_wait_ms") / 1e3, remote / 1e6, (remote + local) / 1e6,
        float((one == other).mean()),
    )  # fmt: skip


def _batch(query: StreamingQuery) -> int:
    progress = query.lastProgress
    return -1 if progress is None else int(progress.batchId)


def _until(condition: Callable[[], bool], query: StreamingQuery) -> None:
    while not condition():
        query.awaitTermination(0.1)
        if not query.isActive:
            raise Unavailable(f"the query ended: {query.exception()}")


def _start(session: SparkSession, folder: Path) -> StreamingQuery:
    session.conf.set("spark.sql.streaming.statefulOperator.useStrictDistribution", "false")
    rows = session.readStream.format("rate-micro-batch").options(
        rowsPerBatch=ROWS, numPartitions=EXECUTORS, advanceMillisPerBatch=1000
    ).load()  # fmt: skip
    keyed = rows.selectExpr(
        "timestamp AS at", f"value % {KEYS} AS key", "repeat(sha2(value || '', 256), 4) AS pad"
    )
    first = session.sql(
        f"""SELECT key, pmod(hash(key), {GROUPS}) AS part, window, count(*) AS n, max(pad) AS pad
            FROM {{keyed}} GROUP BY key, window(at, '1 second')""",
        keyed=keyed.withWatermark("at", "0 seconds").repartition(GROUPS, "key"),
    ).repartitionById(GROUPS, "part")  # fmt: skip
    second = session.sql(
        """SELECT key, part, window(window, '5 seconds').start AS since, sum(n) AS n,
                  max(pad) AS pad
           FROM {first} GROUP BY key, part, window(window, '5 seconds')""",
        first=first,
    )
    writer = second.writeStream.outputMode("append").format("noop")
    return writer.option("checkpointLocation", str(folder / "checkpoint")).start()
