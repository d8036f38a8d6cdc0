"""D2 on Spark: video logo detection with its components apart, under several allocations.

Each allocation runs in queries of its own over the same frames, with the same service times, until
every frame is through. The models are told what the measurer saw, averaged over the runs: `mmk`,
as in the paper, knows rates and service times alone, `hops` also what a batch costs.
"""

import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
from pyspark.sql import SparkSession

from examples.logos import OPERATORS, video_logos
from experiments.drs.workloads.applications import Allocation, written
from experiments.on_spark import spark_session
from penstock.model.batch_overhead import BatchOverhead
from penstock.model.decision import Limits, ScalingPlan
from penstock.model.observation import Observation
from penstock.model.sinks import Memory
from penstock.scaling.models.correction import Correction, fit_correction
from penstock.scaling.models.hops import Hops
from penstock.scaling.models.jackson import MMK
from penstock.scaling.models.network import LatencyModel, Network, network
from penstock.scaling.policies.drs_hops import NEWEST, learn_hops
from penstock.scaling.policies.policy import ScalingContext
from penstock.spark.measure.apart import ApartMeasurer
from penstock.spark.measure.ledger import LedgerEntry
from penstock.spark.run.apart import RunningApart
from penstock.workloads.profiles import steps

FRAMES_PER_S = 8.0
WAITS_S = (0.33, 0.42, 0.005)  # beside what is really computed: 80% of 11 processors busy
FEWER, TOTAL, MORE = 9, 11, 14
SLOTS = 16
LEAD_S = 15.0  # in which queries start, with a frame now and then
LEAD_FRAMES_PER_S = 0.5


@dataclass(frozen=True)
class Length:
    """Seconds of frames in one run, and those at its start that are not counted."""

    run_s: float = 60.0
    warm_up_s: float = 15.0
    allocations: int | None = None


QUICK = Length(run_s=16.0, warm_up_s=4.0, allocations=3)


@dataclass(frozen=True)
class Trial:
    """One allocation as measured."""

    allocation: Allocation
    latency_s: float
    service_s: tuple[float, ...]
    spread_s: float = 0.0  # standard deviation over the seeds
    seen: tuple[Observation, ...] = ()

    @property
    def name(self) -> str:
        return written(self.allocation)


@dataclass(frozen=True)
class Estimates:
    """What a model expects of each trial, and how that is best corrected."""

    model: str
    seconds: tuple[float, ...]
    correction: Correction


@dataclass(frozen=True)
class Found:
    """All trials, with what both models expect of each."""

    trials: tuple[Trial, ...]
    mmk: Estimates
    hops: Estimates
    service_s: tuple[float, ...]


def allocations(length: Length) -> list[Allocation]:
    """Every split of the total that keeps up, and the recommended ones of fewer and of more.

    Chosen before anything is measured, by the waits, with one processor for aggregation.
    """
    expected = _network(WAITS_S)
    candidates: list[Allocation] = []
    for total in (TOTAL, FEWER, MORE):
        first, second, third = (int(k) for k in MMK.assign(expected, total).parallelism)
        candidates.append((first, second, third))
    splits = [(first, TOTAL - 1 - first, 1) for first in range(1, TOTAL - 1)]
    candidates += [s for s in splits if np.isfinite(MMK.latency_s(expected, np.array(s)))]
    return list(dict.fromkeys(candidates))[: length.allocations]


def measure(length: Length, seeds: Sequence[int], say: Callable[[str], None]) -> Found:
    """Run every allocation once for each seed, in one session.

    Each seed goes through all allocations, so that a machine that slows down slows all of them.
    """
    candidates = allocations(length)
    runs: dict[Allocation, list[Trial]] = {one: [] for one in candidates}
    with (
        tempfile.TemporaryDirectory(prefix="penstock-drs-") as folder,
        spark_session(
            "drs-D2", f"local[{SLOTS}]", {"spark.scheduler.mode": "FAIR"}, quick_start=True
        ) as session,
    ):
        _trial(session, candidates[0], 0, QUICK, Path(folder) / "cold")  # JVM and workers start
        for seed in seeds:
            for number, allocation in enumerate(candidates):
                place = Path(folder) / f"{number}-{seed}"
                trial = _trial(session, allocation, seed, length, place)
                runs[allocation].append(trial)
                done = f"seed {seed}, {number + 1} of {len(candidates)}"
                say(f"{done}: {trial.name} took {trial.latency_s:.2f} s a frame")
    trials = tuple(_mean(of_one) for of_one in runs.values())
    service_s = tuple(map(float, np.nanmean([trial.service_s for trial in trials], axis=0)))
    return Found(
        trials,
        _estimates(MMK, trials, service_s),
        _estimates(_hops(trials), trials, service_s),
        service_s,
    )


def _estimates(
    model: LatencyModel, trials: Sequence[Trial], service_s: Sequence[float]
) -> Estimates:
    seen = _network(service_s)
    expected = tuple(model.latency_s(seen, np.array(trial.allocation)) for trial in trials)
    pairs = zip(expected, (trial.latency_s for trial in trials), strict=True)
    return Estimates(model.name, expected, fit_correction(pairs))


def _hops(trials: Sequence[Trial]) -> Hops:
    """As DRS learns it from a window in which all allocations ran equally long."""
    each = NEWEST // len(trials)
    window = tuple(one for trial in trials for one in trial.seen[-each:])
    last = dict(zip(OPERATORS, trials[-1].allocation, strict=True))
    edges = tuple(pairwise(OPERATORS))
    context = ScalingContext(
        window, ScalingPlan(last, sum(last.values())), Limits(1, SLOTS, 60.0), edges, "space"
    )
    return learn_hops(context, OPERATORS, BatchOverhead(0.0), 0.0)


def _trial(
    session: SparkSession, allocation: Allocation, seed: int, length: Length, checkpoint: Path
) -> Trial:
    rate = steps([(LEAD_S, LEAD_FRAMES_PER_S), (length.run_s, FRAMES_PER_S)])
    frames = int(LEAD_S * LEAD_FRAMES_PER_S + length.run_s * FRAMES_PER_S)
    topology = video_logos(
        rate, Memory(), max_latency="60s", frames=frames, waits_s=WAITS_S,
        seed=7 + seed,
    )  # fmt: skip
    processors = dict(zip(OPERATORS, allocation, strict=True))
    with RunningApart(topology, session, checkpoint, processors=processors) as running:
        measurer = ApartMeasurer(running)
        since_s = running.epoch_s + LEAD_S + length.warm_up_s
        deadline = time.monotonic() + 3 * (LEAD_S + length.run_s)
        service: dict[str, float] = {}
        observed: list[Observation] = []
        entries: list[LedgerEntry] = []
        while not running.finished() and time.monotonic() < deadline:
            running.raise_failure()
            time.sleep(2.0)
            entries += running.ledger.take()
            seen = measurer.observe()
            if seen is not None and time.time() >= since_s:
                observed.append(seen)
            for component in seen.components if seen is not None else ():
                service[component.name] = component.service_time_s
        entries += running.ledger.take()
    counted = [
        (part.rows, entry.done_at_s - part.mean_s)
        for entry in entries
        for part in entry.arrivals
        if part.first_s >= since_s
    ]
    mean_s = np.nan
    if counted:
        rows, latency = np.array(counted).T
        mean_s = float(np.average(latency, weights=rows))
    taken = tuple(service.get(name, np.nan) for name in OPERATORS)
    while_fed = observed[: int((length.run_s - length.warm_up_s) / 2.0)]
    return Trial(allocation, mean_s, taken, seen=tuple(while_fed))


def _mean(runs: Sequence[Trial]) -> Trial:
    service = np.nanmean([run.service_s for run in runs], axis=0)
    latencies = [run.latency_s for run in runs]
    shortest = min(len(run.seen) for run in runs)
    return Trial(
        runs[0].allocation,
        float(np.mean(latencies)),
        tuple(map(float, service)),
        float(np.std(latencies)),
        tuple(one for at in zip(*(run.seen[:shortest] for run in runs), strict=True) for one in at),
    )


def _network(service_s: Sequence[float]) -> Network:
    """Every frame goes through all three operators once."""
    rates = np.full(len(OPERATORS), FRAMES_PER_S)
    return network(OPERATORS, rates, 1.0 / np.array(service_s), FRAMES_PER_S)
