"""Sliding windows by panes against Spark's own `window`, on the same rows in one session.

Both sides reduce their windows to one fingerprint per batch, and the fingerprints must be equal:
counts, keys, windows and maxima exactly, sums and means up to the order of additions.
"""

import math
import os
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from benchmarks._processor_time import processor_s
from benchmarks._sessions import local_session
from penstock import window_aggregate
from penstock.spark.sources.generator_source import FORMAT
from penstock.workloads.generator import Generator
from penstock.workloads.profiles import constant

AGGREGATES = {"n": "count", "total": "sum(value)", "mean": "avg(value)", "most": "max(value)"}
EPOCH_S = 1_700_000_000.0
Query = Callable[[DataFrame], DataFrame]


@dataclass(frozen=True)
class Trial:
    """So many batches after one that starts the query and is not timed; panes are a second long.

    The batch without rows that closes the last windows is timed as well.
    """

    name: str
    panes: int
    keys: int
    rows_per_key_and_pane: float
    rows_per_batch: int
    batches: int
    wanted: float
    rounds: int = 1  # the quicker one counts, on each side
    hottest: bool = False  # of all keys of a window, the one with the most rows (Nexmark's q5)

    @property
    def stream(self) -> Generator:
        rate = constant(self.keys * self.rows_per_key_and_pane)
        rows = self.rows_per_batch * (self.batches + 1)
        return Generator(rate, keys=self.keys, rows=rows, lanes=2, max_rows=self.rows_per_batch)


TRIALS = (
    Trial("windows-60-panes", 60, 2_000, 10, 3_000_000, 3, 10),
    Trial("windows-100-panes", 100, 2_000, 10, 1_500_000, 1, 15),
    Trial("windows-200-keys", 60, 200, 25, 2_000_000, 1, 4),
    Trial("windows-one-row-per-key-and-pane", 60, 2_000, 1, 200_000, 2, 2),
    Trial("windows-60-panes-10000-keys", 60, 10_000, 10, 2_000_000, 1, 10),
    Trial("windows-60-panes-hottest", 60, 2_000, 10, 2_000_000, 2, 3, hottest=True),
    Trial("windows-10-panes-hottest", 10, 2_000, 5, 300_000, 4, 1, hottest=True),
    Trial("windows-6-panes-hottest", 6, 2_000, 5, 300_000, 4, 1, hottest=True),
    Trial("windows-10-panes", 10, 2_000, 5, 300_000, 4, 1),
    Trial("windows-5-panes", 5, 2_000, 5, 300_000, 4, 0.95, rounds=3),
    Trial("windows-tumbling", 1, 2_000, 10, 1_000_000, 2, 0.95, rounds=3),
)
CASES = tuple(trial.name.removeprefix("windows-") for trial in TRIALS)
WARM_UP = Trial("warm-up", 20, 500, 10, 100_000, 1, 0)


@dataclass(frozen=True)
class Outcome:
    """What one query took, left behind, and found."""

    batch_s: float
    cpu_s: float  # of the whole query, its start and first batch included
    memory_bytes: int
    checkpoint_bytes: int
    fingerprint: tuple[int, int, int, float, float]


def run(case: str | None = None) -> Iterator[dict[str, Any]]:
    """One row for the speed of each trial, or of one, and two for the state of the first."""
    with local_session() as session:
        _both(session, WARM_UP)
        for trial in (t for t, name in zip(TRIALS, CASES, strict=True) if case in (None, name)):
            native, ours = _both(session, trial)
            rows = trial.rows_per_batch * trial.batches
            conditions = (
                f"baseline: Spark's window() and groupBy; {trial.panes} panes a window, "
                f"{trial.keys:,} keys, {trial.rows_per_key_and_pane:g} rows per key and pane, "
                f"{rows:,} rows in batches of {trial.rows_per_batch:,} and the batch that closes "
                f"the last windows, the first batch not timed, count, sum, avg and max, local[2]; "
                f"{ours.fingerprint[0]:,} windows, equal on both sides"
            )
            yield _row(
                trial.name, rows / native.batch_s, rows / ours.batch_s, "rows/s",
                native.batch_s / ours.batch_s,
                f"{conditions}; at least {trial.wanted:g} is asked for",
            )  # fmt: skip
            if trial is TRIALS[0]:
                for what in ("memory_bytes", "checkpoint_bytes"):
                    before, after = getattr(native, what), getattr(ours, what)
                    yield _row(
                        f"{trial.name}-{what.replace('_', '-')}", before, after, "bytes",
                        before / max(after, 1),
                        f"{conditions}; at least 1 is asked for",
                    )  # fmt: skip


def _both(session: SparkSession, trial: Trial) -> tuple[Outcome, Outcome]:
    """Spark's and ours, in turn, with equal results."""
    sides: tuple[list[Outcome], list[Outcome]] = ([], [])
    for _ in range(trial.rounds):
        for side, query in zip(sides, (own_query(trial), our_query(trial)), strict=True):
            side.append(outcome(session, trial, query))
    native, ours = (min(side, key=lambda outcome: outcome.batch_s) for side in sides)
    check_equal(trial, native, ours)
    return native, ours


def own_query(trial: Trial) -> Query:
    """Spark's `window` and `groupBy`."""
    columns = [
        F.expr("count(*)" if text == "count" else text).alias(name)
        for name, text in AGGREGATES.items()
    ]
    window = F.window("at", f"{trial.panes} seconds", "1 second")
    return lambda frame: followed(trial, frame.groupBy("key", window).agg(*columns))


def our_query(trial: Trial) -> Query:
    """`window_aggregate`."""
    return lambda frame: followed(
        trial,
        window_aggregate(
            frame, by="key", window=f"{trial.panes}s", slide="1s", aggregates=AGGREGATES,
            state_follows=trial.hottest,
        ),
    )  # fmt: skip


def followed(trial: Trial, windows: DataFrame) -> DataFrame:
    """The windows of all keys, or of the one with the most rows and the largest number."""
    if not trial.hottest:
        return windows
    span = F.window(F.window_time("window"), "1 second").alias("window")
    best = F.max(F.struct("n", "key", "total", "mean", "most")).alias("best")
    return windows.groupBy(span).agg(best).select("window", "best.*")


def outcome(session: SparkSession, trial: Trial, query: Query) -> Outcome:
    """Run a query over the rows of a trial."""
    options = {
        "generator": trial.stream.to_json(), "epoch_s": repr(EPOCH_S), "stream": trial.name,
    }  # fmt: skip
    frame = session.readStream.format(FORMAT).options(**options).load()
    found: list[Any] = []

    def take(batch: DataFrame, _batch_id: int) -> None:
        exact = F.xxhash64("key", "window.start", "window.end", "n", "most")
        found.extend(
            batch.agg(
                F.count("*"), F.sum("n"), F.bit_xor(exact), F.sum("total"), F.sum("mean")
            ).collect()
        )

    with tempfile.TemporaryDirectory(prefix="penstock-bench-") as folder:
        stream = query(frame.withWatermark("at", "1 second")).writeStream.foreachBatch(take)
        stream = stream.option("checkpointLocation", folder).trigger(availableNow=True)
        before_s = processor_s(os.getpid())
        started = stream.start()
        started.awaitTermination()
        cpu_s = processor_s(os.getpid()) - before_s
        progress = started.recentProgress
        written = sum(f.stat().st_size for f in Path(folder, "state").rglob("*") if f.is_file())
    batch_s = sum(p.durationMs["triggerExecution"] for p in progress[1:]) / 1e3
    memory = max(operator.memoryUsedBytes for p in progress for operator in p.stateOperators)
    return Outcome(batch_s, cpu_s, memory, written, _summed(found))


def _summed(found: list[Any]) -> tuple[int, int, int, float, float]:
    mixed = 0
    for row in found:
        mixed ^= row[2] or 0
    count, rows, total, mean = (sum(row[place] or 0 for row in found) for place in (0, 1, 3, 4))
    return int(count), int(rows), mixed, float(total), float(mean)


def check_equal(trial: Trial, native: Outcome, ours: Outcome) -> None:
    """Both found the same windows."""
    exact = native.fingerprint[:3] == ours.fingerprint[:3]
    near = all(
        math.isclose(left, right, rel_tol=1e-9)
        for left, right in zip(native.fingerprint[3:], ours.fingerprint[3:], strict=True)
    )
    if not (exact and near):
        raise AssertionError(f"{trial.name}: {native.fingerprint} is not {ours.fingerprint}")


def _row(
    name: str, baseline: float, ours: float, unit: str, ratio: float, conditions: str
) -> dict[str, Any]:
    return {
        "name": name, "baseline": round(baseline), "ours": round(ours), "unit": unit,
        "ratio": round(ratio, 2), "conditions": conditions,
    }  # fmt: skip
