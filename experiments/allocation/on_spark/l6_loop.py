"""L6 in the loop as it is shipped: jobs 2 to 4 under ALBIC, and what becomes of the load.

Executors are on hosts of their own where that can be had (root), because those of one host read
each other's files, and a byte between them costs nothing. Job 2 starts without any collocation, as
in the paper; the others where Spark puts them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from pyspark.sql.streaming.query import StreamingQuery

import penstock
from benchmarks._hosts import can_have_hosts
from experiments.allocation.on_spark.flights import flights_job, replay
from experiments.allocation.on_spark.l6 import GROUPS, delays_by_plane
from experiments.allocation.on_spark.placement import Trial
from experiments.allocation.on_spark.rounds import EXECUTORS, draw_rounds
from experiments.claim import Claim, judged
from experiments.on_spark import reporter
from penstock.control.step import Step
from penstock.model.sinks import Memory
from penstock.spark import handles
from penstock.spark.run.together import Pace, RunningTopology

JOBS = (2, 3, 4)
DAYS, DAYS_PER_BATCH = 365, 3
WARM_UP = 10  # batches; Spark compiles
PERIODS, QUICK_PERIODS = 12, 6
PERIOD_S = 3.0
MOST_MIGRATIONS = 10  # what is shipped


@dataclass(frozen=True)
class Loop:
    """One job: what each period with a plan measured, before it moved anything."""

    hosts: bool
    load_distance: list[float]
    collocation: list[float]  # percent
    moves: list[int]
    carried_out: int  # of all moves
    row_us: list[float]  # CPU of a row, batch by batch, whatever else the machine does

    @property
    def load_index(self) -> list[float]:
        """CPU of a row, in percent of what it was in the first batches."""
        first = float(np.median(self.row_us[: _some(self.row_us)])) if self.row_us else float("nan")
        return [100 * one / first for one in self.row_us]


def claim(folder: Path, seeds: tuple[int, ...], quick: bool) -> Claim:
    """Each job for some periods of the loop."""
    del seeds  # a run on Spark is one sample
    say, found = reporter("allocation"), {}
    for job in JOBS:
        say(f"job {job} in the loop")
        found[job] = in_loop(job, QUICK_PERIODS if quick else PERIODS, can_have_hosts())
        say(_line(job, found[job]))
    two = found[2]
    return judged(
        "L6 in the loop",
        paper="job 2: the load index falls from 100 to 50% as all becomes collocated, by 10 "
        "migrations a round; jobs 3 and 4 are collocated by half and more",
        ours="; ".join(_line(job, loop) for job, loop in found.items()),
        where="spark",
        parts={
            "job 2 is collocated over 80% in the end": two.collocation[-1] > 80,
            f"at most {MOST_MIGRATIONS} migrations a round": all(
                max(loop.moves) <= MOST_MIGRATIONS for loop in found.values()
            ),
            "job 2: the load index falls to 75% or less": _late(two.load_index) <= 75,
        },
        why="Spark writes and reads shuffle files wherever a task runs; what collocation saves is "
        "the way between hosts.",
        figures=draw_rounds(
            folder, "allocation-L6-loop", "load index, %",
            {f"job {job}": loop.load_index for job, loop in found.items()},
        ),
        numbers={f"job {job}": vars(loop) for job, loop in found.items()},
    )  # fmt: skip


def in_loop(job: int, periods: int, hosts: bool) -> Loop:
    """One job under `attach` with ALBIC, all other options of allocation as they are shipped."""
    start = delays_by_plane(DAYS, DAYS_PER_BATCH) if job == 2 else _topology(job)
    with Trial(start, EXECUTORS, GROUPS, hosts=hosts) as trial:
        if job == 2:
            _place_apart(trial)
        trial.batches(WARM_UP)
        with penstock.attach(
            trial.query, max_latency="60s", executors=(EXECUTORS, EXECUTORS), policy="static",
            allocation="albic", period_s=PERIOD_S, history=str(trial.folder / "history.sqlite"),
        ) as attached:  # fmt: skip
            begin = handles.last_batch(trial.query)
            trial.until(lambda: len(_planned(attached.steps)) >= periods or _over(trial.query))
            return _loop(_planned(attached.steps), hosts, _row_us(trial, begin))


def _place_apart(trial: Trial) -> None:
    nodes = trial.nodes()
    order = {name: index for index, name in enumerate(trial.placement.components)}
    trial.place(lambda name, group: nodes[(group + order[name]) % len(nodes)])


def _over(query: StreamingQuery) -> bool:
    """Whether the year is."""
    return handles.last_batch(query) >= DAYS // DAYS_PER_BATCH


def _planned(steps: Sequence[Step]) -> list[Step]:
    return [step for step in steps if step.allocation is not None]


def _loop(steps: Sequence[Step], hosts: bool, row_us: list[float]) -> Loop:
    plans = [step.allocation for step in steps if step.allocation is not None]
    done = [step.moved for step in steps if step.moved is not None]
    return Loop(
        hosts,
        [plan.load_distance for plan in plans],
        [100 * plan.collocation for plan in plans],
        [len(plan.moves) for plan in plans],
        sum(one.migration.key_groups for one in done if one.migration is not None),
        row_us,
    )


def _row_us(trial: Trial, begin: int) -> list[float]:
    """CPU of a row in the batches since one, as far as Spark still knows them."""
    rows = {p.batchId: p.numInputRows for p in trial.query.recentProgress if p.batchId > begin}
    cpu_s = dict.fromkeys(rows, 0.0)
    for job in handles.jobs_of_group(trial.session, str(trial.query.runId)):
        if job.batch_id in cpu_s:
            for stage in handles.stages(trial.session, job.stage_ids):
                tasks = handles.stage_tasks(trial.session, stage.id, stage.attempt)
                cpu_s[job.batch_id] += float(tasks.cpu_time_ns.sum()) / 1e9
    return [1e6 * cpu_s[one] / rows[one] for one in sorted(rows) if rows[one] and cpu_s[one]]


def _topology(job: int) -> Any:
    def start(session: Any, folder: Path) -> RunningTopology:
        days = replay(folder / "days", DAYS, DAYS_PER_BATCH)
        sinks = {"planes": Memory(), "routes": Memory(), "couriers": Memory()}
        return RunningTopology(
            flights_job(job, days, sinks), session, folder / "checkpoint", Pace()
        )

    return start


def _some(values: Sequence[float]) -> int:
    return max(1, len(values) // 4)


def _late(values: Sequence[float]) -> float:
    return float(np.median(values[-_some(values) :])) if values else float("nan")


def _line(job: int, loop: Loop) -> str:
    where = "hosts of their own" if loop.hosts else "one host"
    return (
        f"job {job} ({where}): {loop.collocation[0]:.0f} -> {loop.collocation[-1]:.0f}% collocated,"
        f" load distance {loop.load_distance[0]:.0f} -> {loop.load_distance[-1]:.0f} points, "
        f"{loop.carried_out} of {sum(loop.moves)} migrations carried out in {len(loop.moves)} "
        f"periods, load index {_late(loop.load_index):.0f}%"
    )
