"""D2 on Spark: video logo detection with its components apart, under several allocations.

Each allocation runs in queries of its own over the same frames, with the same service times, until
every frame is through. The model is told what the measurer saw, averaged over the runs.
"""

import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from pyspark.sql import SparkSession

from examples.logos import OPERATORS, video_logos
from experiments.drs.workloads.applications import Allocation, written
from experiments.on_spark import spark_session
from penstock.model.sinks import Memory
from penstock.scaling.models.correction import Correction, fit_correction
from penstock.scaling.models.jackson import MMK
from penstock.scaling.models.network import Network, network
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

    run_s: float = 40.0
    warm_up_s: float = 8.0
    allocations: int | None = None


QUICK = Length(run_s=16.0, warm_up_s=4.0, allocations=3)


@dataclass(frozen=True)
class Trial:
    """One allocation as measured."""

    allocation: Allocation
    latency_s: float
    service_s: tuple[float, ...]

    @property
    def name(self) -> str:
        return written(self.allocation)


@dataclass(frozen=True)
class Found:
    """All trials, with the estimates for each."""

    trials: tuple[Trial, ...]
    estimates_s: tuple[float, ...]
    correction: Correction
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
    """Run every allocation once for each seed, in one session."""
    trials = []
    candidates = allocations(length)
    with (
        tempfile.TemporaryDirectory(prefix="penstock-drs-") as folder,
        spark_session(
            "drs-D2", f"local[{SLOTS}]", {"spark.scheduler.mode": "FAIR"}, quick_start=True
        ) as session,
    ):
        _trial(session, candidates[0], 0, QUICK, Path(folder) / "cold")  # JVM and workers start
        for number, allocation in enumerate(candidates):
            runs = [
                _trial(session, allocation, seed, length, Path(folder) / f"{number}-{seed}")
                for seed in seeds
            ]
            trials.append(_mean(runs))
            done = f"{number + 1} of {len(candidates)}"
            say(f"{done}: {trials[-1].name} took {trials[-1].latency_s:.2f} s a frame")
    service_s = tuple(map(float, np.nanmean([trial.service_s for trial in trials], axis=0)))
    seen = _network(service_s)
    estimates = tuple(MMK.latency_s(seen, np.array(trial.allocation)) for trial in trials)
    pairs = zip(estimates, (trial.latency_s for trial in trials), strict=True)
    return Found(tuple(trials), estimates, fit_correction(pairs), service_s)


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
        entries: list[LedgerEntry] = []
        while not running.finished() and time.monotonic() < deadline:
            running.raise_failure()
            time.sleep(2.0)
            entries += running.ledger.take()
            seen = measurer.observe()
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
    return Trial(allocation, mean_s, tuple(service.get(name, np.nan) for name in OPERATORS))


def _mean(runs: Sequence[Trial]) -> Trial:
    service = np.nanmean([run.service_s for run in runs], axis=0)
    latency_s = float(np.mean([run.latency_s for run in runs]))
    return Trial(runs[0].allocation, latency_s, tuple(map(float, service)))


def _network(service_s: Sequence[float]) -> Network:
    """Every frame goes through all three operators once."""
    rates = np.full(len(OPERATORS), FRAMES_PER_S)
    return network(OPERATORS, rates, 1.0 / np.array(service_s), FRAMES_PER_S)
