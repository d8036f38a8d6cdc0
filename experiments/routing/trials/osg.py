"""One operator's tasks under OSG and round robin, for R5 (Kotto-Kombi 2018, ch. 6 s. 4.2).

Open in the paper and chosen here: 1,000 values with costs evenly from 10 to 90 ms; 4 tasks at 70%
load for two minutes and at 130% for one; then 8 tasks at the same input for two minutes; Poisson
arrivals; costs are learnt, and pending rows looked at, once a second.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from experiments.routing.trials.greedy import greedy_schedule
from penstock.model.observation import Floats, Ints
from penstock.routing.cost_sketch import CostSketch, empty_cost_sketch
from penstock.routing.hashing import Hashes, key_hashes

DISTINCT_VALUES = 1_000
COSTS_S = (0.010, 0.090)
ZIPF = 1.5
PHASES = ((120, 4, 0.7), (60, 4, 1.3), (120, 8, 0.65))  # seconds, tasks, load
CPU_WINDOW_S, AFTER_S = 10, 90


@dataclass(frozen=True)
class TaskRun:
    """Means of a run: deviation of busy time among tasks (points), latency, rows pending a task."""

    busy_deviation: float
    latency_after_s: float
    pending_rows: float


@dataclass(frozen=True)
class _Rows:
    arrival_s: Floats
    hashes: Hashes
    cost_s: Floats


@dataclass(frozen=True)
class _Served:
    task: Ints
    start_s: Floats
    finish_s: Floats


def task_run(seed: int, skewed: bool, method: str, shrink: float = 1.0) -> TaskRun:
    """One run; `method` is "osg" or "round-robin"; `shrink` shortens every phase."""
    phases = [(max(2, round(seconds * shrink)), tasks, load) for seconds, tasks, load in PHASES]
    rows = _arrivals(np.random.default_rng(seed), phases, skewed)
    served = _served(rows, phases, method)
    ends = np.cumsum([seconds for seconds, _, _ in phases])
    reconfigured = float(ends[-2])
    after = (rows.arrival_s >= reconfigured) & (rows.arrival_s < reconfigured + AFTER_S)
    pending = float((served.finish_s - rows.arrival_s).sum())  # row-seconds in the system
    task_seconds = sum(seconds * tasks for seconds, tasks, _ in phases)
    return TaskRun(
        busy_deviation(
            served.task,
            served.start_s,
            served.finish_s,
            [(seconds, tasks) for seconds, tasks, _ in phases],
        ),
        float((served.finish_s - rows.arrival_s)[after].mean()),
        pending / task_seconds,
    )


def _arrivals(
    rng: np.random.Generator, phases: list[tuple[int, int, float]], skewed: bool
) -> _Rows:
    # The costliest values are the rarest.
    shares = np.arange(1, DISTINCT_VALUES + 1) ** (-ZIPF if skewed else 0.0)
    shares /= shares.sum()
    costs = np.linspace(*COSTS_S, DISTINCT_VALUES)
    mean_s, start, times = float(shares @ costs), 0, []
    for seconds, tasks, load in phases:
        number = rng.poisson(load * tasks * seconds / mean_s)
        times.append(np.sort(rng.uniform(start, start + seconds, number)))
        start += seconds
    arrivals = np.concatenate(times)
    values = np.searchsorted(np.cumsum(shares)[:-1], rng.random(len(arrivals)), side="right")
    return _Rows(arrivals, key_hashes(values), costs[values])


def _served(rows: _Rows, phases: list[tuple[int, int, float]], method: str) -> _Served:
    number = len(rows.arrival_s)
    served = _Served(np.zeros(number, dtype=np.int64), np.zeros(number), np.full(number, np.inf))
    tasks_at = [tasks for seconds, tasks, _ in phases for _ in range(seconds)]
    free, sketch = np.zeros(max(tasks_at)), empty_cost_sketch()
    edges = np.searchsorted(rows.arrival_s, np.arange(len(tasks_at) + 1))
    for second, tasks in enumerate(tasks_at):
        some = slice(int(edges[second]), int(edges[second + 1]))
        if method == "osg":
            sketch = _learnt(sketch, rows, served, second)
            routes = _osg_routes(rows, served, sketch, some, second, tasks)
        else:
            routes = np.arange(some.start, some.stop) % tasks
        served.task[some] = routes
        _serve(rows, served, free, some)
    return served


def _learnt(sketch: CostSketch, rows: _Rows, served: _Served, now_s: int) -> CostSketch:
    done = np.flatnonzero((served.finish_s <= now_s) & (served.finish_s > now_s - 1))
    return sketch.learn(rows.hashes[done], rows.cost_s[done]) if len(done) else sketch


def _osg_routes(
    rows: _Rows, served: _Served, sketch: CostSketch, some: slice, now_s: int, tasks: int
) -> Ints:
    done = served.finish_s[: some.start] <= now_s
    idle_since = np.zeros(tasks)
    np.maximum.at(idle_since, served.task[: some.start][done], served.finish_s[: some.start][done])
    pending = np.flatnonzero(~done)
    work = np.bincount(
        served.task[pending], weights=sketch.estimate_s(rows.hashes[pending]), minlength=tasks
    )
    free = np.where(work > 0, now_s + work, idle_since)
    return greedy_schedule(sketch.estimate_s(rows.hashes[some]), free, rows.arrival_s[some]).routes


def _serve(rows: _Rows, served: _Served, free: Floats, some: slice) -> None:
    """Tasks are first come, first served; writes start and finish of the rows."""
    for row in range(some.start, some.stop):
        task = served.task[row]
        start = max(free[task], rows.arrival_s[row])
        served.start_s[row] = start
        free[task] = served.finish_s[row] = start + rows.cost_s[row]


def busy_deviation(
    task: Ints, start_s: Floats, finish_s: Floats, phases: Sequence[tuple[float, int]]
) -> float:
    """Points of busy time among the tasks in use, over windows of ten seconds.

    The first three say which task was busy from when to when; phases are seconds and tasks in use.
    """
    deviations, phase_began_s = [], 0.0
    for seconds, tasks in phases:
        phase_ends_s = phase_began_s + seconds
        for begin_s in np.arange(phase_began_s, phase_ends_s, CPU_WINDOW_S):
            end_s = min(begin_s + CPU_WINDOW_S, phase_ends_s)
            busy_s = np.clip(finish_s, begin_s, end_s) - np.clip(start_s, begin_s, end_s)
            used = np.bincount(task, weights=busy_s, minlength=tasks)[:tasks]
            deviations.append(100 * float(np.std(used / (end_s - begin_s))))
        phase_began_s = phase_ends_s
    return float(np.mean(deviations))
