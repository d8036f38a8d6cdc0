"""ShuffleBench's job as a topology: the events that plain Python finds in all records."""

from collections import defaultdict
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from benchmarks import _shufflebench_job as job
from benchmarks.shufflebench import events
from penstock.spark.run.together import Pace, RunningTopology
from spark.run_to import LIMIT_S

pytestmark = pytest.mark.spark

RECORDS, FILES, RULES = 3_000, 2, 20  # so that each consumer reports three times


def test_each_consumer_reports_at_its_tenth_records(
    session: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(job, "RULES", RULES)
    monkeypatch.setattr(job, "WIDTH", int(job.SPACE * job.SELECTIVITY / RULES))
    job.write(tmp_path / "records", RECORDS, FILES)
    made = job.topology(tmp_path / "records", tmp_path)
    with RunningTopology(made, session, tmp_path / "checkpoint", Pace(once=True)) as running:
        assert running.wait(LIMIT_S)
    found = events(tmp_path / "events")
    assert found == sorted(expected(tmp_path / "records"))
    assert len(found) > 2 * RULES


def expected(folder: Path) -> list[tuple[Any, ...]]:
    """Every rule asked of every record, one after another."""
    begins = sorted(np.random.default_rng(7).integers(0, job.SPACE, RULES).tolist())
    taken: dict[int, list[tuple[int, datetime]]] = defaultdict(list)
    for row in pq.read_table(folder).sort_by("id").to_pylist():
        number = int.from_bytes(row["data"][:8], "little") % job.SPACE
        for consumer, begin in enumerate(begins):
            if (number - begin) % job.SPACE < job.WIDTH:
                at = datetime(2023, 11, 14, 22, 13, 20, tzinfo=UTC) + timedelta(
                    milliseconds=row["id"]
                )
                taken[consumer].append((int.from_bytes(row["data"][:4], "little"), at))
    tens = [
        (consumer, rows[first : first + 10])
        for consumer, rows in taken.items()
        for first in range(0, len(rows) // 10 * 10, 10)
    ]
    return [
        (consumer, sum(number for number, _ in rows), rows[0][1], rows[-1][1])
        for consumer, rows in tens
    ]
