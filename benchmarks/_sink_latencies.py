"""Latency of rows from outside: from when a row's file appeared to the commit of Spark's file sink.

The share in time counts from when start-up is over, by the rule of every run (model/start_up.py).
"""

import json
import math
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlparse

import numpy as np
import pyarrow.parquet as pq

from penstock.config import Settings
from penstock.model.number_text import seconds_text, share_text
from penstock.model.observation import Floats, Ints, LatencyObservation, Observation
from penstock.model.start_up import StartUp

PERIOD_S = Settings().period_s  # as a loop looks that nobody set otherwise


@dataclass(frozen=True)
class Delivered:
    """The rows that came out, in the order of their commits; columns."""

    vehicle: Ints
    arrived_s: Floats
    committed_s: Floats


@dataclass(frozen=True)
class InTime:
    """What was in time, and the start-up that is told beside it."""

    rows: int
    lost: int
    twice: int
    share: float  # of rows after start-up and those that never came out
    mean_s: float  # after start-up
    startup_s: float  # from the first row's arrival until results counted
    startup_rows: int
    startup_worst_s: float

    def __str__(self) -> str:
        return (
            f"{share_text(self.share)} in time and mean {seconds_text(self.mean_s)}, counted after "
            f"a start-up of {self.startup_s:.0f} s ({self.startup_rows} rows, worst "
            f"{self.startup_worst_s:.2f} s), {self.rows} rows, lost {self.lost}, twice {self.twice}"
        )


def delivered(sink: Path) -> Delivered:
    """From the sink's own commit log: which files each batch published, and when."""
    vehicle, arrived_s, committed_s, published = [], [], [], set()
    logged = (sink / "_spark_metadata").iterdir()
    commits = [file for file in logged if file.name.split(".")[0].isdigit()]
    for commit in sorted(commits, key=lambda file: int(file.name.split(".")[0])):
        for line in commit.read_text(encoding="utf-8").splitlines()[1:]:
            file = Path(unquote(urlparse(json.loads(line)["path"]).path))
            if file in published:
                continue  # every tenth commit lists all files again
            published.add(file)
            rows = pq.read_table(file)
            vehicle.append(rows["vehicle"].to_numpy())
            arrived_s.append(rows["at"].to_numpy())
            committed_s.append(np.full(rows.num_rows, commit.stat().st_mtime))
    if not vehicle:
        return Delivered(np.zeros(0, dtype=np.int64), np.zeros(0), np.zeros(0))
    return Delivered(*map(np.concatenate, (vehicle, arrived_s, committed_s)))


def in_time(rows: Delivered, sent: int, bound_s: float) -> InTime:
    """The share of rows within the bound; one that never came out was not in time."""
    waited_s = rows.committed_s - rows.arrived_s
    counted = _counted(rows, waited_s, bound_s)
    different, started = len(np.unique(rows.vehicle)), waited_s[~counted]
    lost, kept = sent - different, waited_s[counted]
    due = len(kept) + lost
    began_s = rows.arrived_s.min(initial=math.inf)
    counts_from_s = rows.committed_s[~counted].max(initial=began_s)
    return InTime(
        rows=len(rows.vehicle),
        lost=lost,
        twice=len(rows.vehicle) - different,
        share=float((kept <= bound_s).sum() / due) if due else math.nan,
        mean_s=float(kept.mean()) if len(kept) else math.nan,
        startup_s=float(counts_from_s - began_s) if len(started) else 0.0,
        startup_rows=len(started),
        startup_worst_s=float(started.max(initial=0.0)),
    )


def _counted(rows: Delivered, waited_s: Floats, bound_s: float) -> np.ndarray:
    """Which rows came out after start-up, in periods as a loop would have looked."""
    counted = np.zeros(len(waited_s), dtype=bool)
    if len(waited_s) == 0:
        return counted
    start_up, began_s = StartUp(), float(rows.arrived_s.min())
    period = np.floor((rows.committed_s - began_s) / PERIOD_S).astype(np.int64)
    for number in np.unique(period).tolist():
        here = period == number
        waited = waited_s[here]
        latency = LatencyObservation(
            int(here.sum()), float(waited.mean()), float(np.percentile(waited, 95)),
            float(waited.max()), float((waited <= bound_s).mean()),
        )  # fmt: skip
        at_s = began_s + (number + 1) * PERIOD_S
        counted[here] = start_up.counts(
            Observation(at_s, PERIOD_S, math.nan, math.nan, latency=latency)
        )
    return counted
