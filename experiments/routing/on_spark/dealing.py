"""One operator's tasks under OSG or round robin, on Spark, while load and tasks change (claim R5).

Values cost a wait, so that a few cores suffice for many tasks. Latency is that of every row, from
its arrival to the end of its batch; what a task did is told by its run time.
"""

import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from pyspark.sql import SparkSession

from experiments.routing.on_spark.costly_values import SCHEMA, CostlyValues
from penstock.model.observation import Floats, Ints
from penstock.model.route import Route
from penstock.model.sinks import Memory
from penstock.model.topology import Topology
from penstock.spark import handles
from penstock.spark.routes.costed import costed
from penstock.spark.run.together import RunningTopology
from penstock.spark.sources.control import Controls
from penstock.workloads.generator import Generator
from penstock.workloads.profiles import steps

LIMIT_S = 120.0
_SOURCE = "rows"


@dataclass(frozen=True)
class Phase:
    """For some seconds so many tasks are in use, at this load of theirs."""

    duration_s: float
    tasks: int
    load: float


@dataclass(frozen=True)
class DealtRun:
    """Rows and tasks of a run, as columns; times are seconds since the stream began."""

    arrival_s: Floats  # of each row
    latency_s: Floats
    batch_of_task: Ints  # of each task that ran
    task: Ints  # its number
    start_s: Floats
    busy_s: Floats


def dealt_run(
    session: SparkSession, method: str, skew: float, seed: int, phases: Sequence[Phase],
    values: int, costs_s: tuple[float, float],
) -> DealtRun:  # fmt: skip
    """Run one method over all phases; the number of tasks changes without a restart."""
    work = CostlyValues(values, *costs_s)
    stream = _stream(work.mean_s(skew), skew, seed, phases, values)
    partitions = max(phase.tasks for phase in phases)
    with tempfile.TemporaryDirectory(prefix="penstock-dealt-") as folder:
        checkpoint = Path(folder) / "checkpoint"
        orders = Controls(checkpoint / "penstock/sources").of(_SOURCE)
        orders.order(route_tasks=phases[0].tasks)
        topology = _topology(stream, method, partitions, work)
        with RunningTopology(topology, session, checkpoint, measured=False) as running:
            _follow(running, phases)
            if not running.wait(LIMIT_S):
                raise RuntimeError(f"{method} did not work off its stream in {LIMIT_S:g} s")
            running.settle()
            return _summarised(running, stream, partitions)


def _stream(
    mean_s: float, skew: float, seed: int, phases: Sequence[Phase], values: int
) -> Generator:
    rates = [(phase.duration_s, phase.load * phase.tasks / mean_s) for phase in phases]
    rows = int(sum(duration_s * rate for duration_s, rate in rates))
    return Generator(steps(rates), keys=values, skew=skew, seed=seed, rows=rows, lanes=1)


def _topology(stream: Generator, method: str, partitions: int, work: CostlyValues) -> Topology:
    made = Topology("dealt", max_latency="60s")
    key = "key" if method == "osg" else ()
    made.source(_SOURCE, stream, route=Route(method, key=key, partitions=partitions, period="1s"))

    @made.operator(_SOURCE)
    def looked_up(rows: Any) -> Any:
        return rows.mapInArrow(costed(work, by="key", source=_SOURCE), SCHEMA)

    made.sink("out", "looked_up", Memory())
    return made


def _follow(running: RunningTopology, phases: Sequence[Phase]) -> None:
    """Change the number of tasks when each phase begins."""
    begin_s = running.epoch_s
    for phase in phases:
        running.use_tasks(_SOURCE, phase.tasks)
        begin_s += phase.duration_s
        running.raise_failure()
        time.sleep(max(0.0, begin_s - time.time()))


def _summarised(running: RunningTopology, stream: Generator, partitions: int) -> DealtRun:
    entries = sorted(running.ledger.take(), key=lambda entry: entry.batch_id)
    done_s = np.repeat([e.done_at_s for e in entries], [int(e.rows) for e in entries])
    arrival_s = stream.rate.arrival_s(np.arange(len(done_s)))
    group = str(running.queries[0].runId)
    batches, tasks = [], []
    for job in handles.jobs_of_group(running.session, group):
        for stage in handles.stages(running.session, job.stage_ids):
            if stage.tasks == partitions and stage.shuffle_records_read > 0:
                tasks.append(handles.stage_tasks(running.session, stage.id, stage.attempt))
                batches.append(np.full(len(tasks[-1]), job.batch_id))
    return DealtRun(
        arrival_s,
        done_s - running.epoch_s - arrival_s,
        np.concatenate(batches),
        np.concatenate([columns.partition for columns in tasks]),
        np.concatenate([columns.launched_ms for columns in tasks]) / 1e3 - running.epoch_s,
        np.concatenate([columns.run_time_ms for columns in tasks]) / 1e3,
    )
