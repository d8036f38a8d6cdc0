"""What it costs a row to be read from files, and to pass through an exchange: the units by which
a topology's sources are read again or shared (`penstock.fusion.reading`).

Tables of numbers and texts, in four formats; processor time of tasks on one core, warm, the least
of five. Fitted by least squares with no unit below zero. What a stage costs a batch is seen by
whole programs, as its planning belongs to no task.
"""

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from itertools import combinations, count
from pathlib import Path
from statistics import mean
from typing import Any

import numpy as np
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from benchmarks.nexmark.events import PER_S, Events
from penstock.fusion.reading import FETCH, FORMATS, STAGE_S, WRITE, Unit
from penstock.spark import handles
from penstock.spark.cluster.session import build_session

ROWS = 1_000_000
REPEATS = 5
EXCHANGE = "exchange"
STAGE = "stage"
CASES = (EXCHANGE, *FORMATS, STAGE)
_NUMBERS = count()
QUERIES = ["q1", "q2", "q7", "q17"]  # all of which read bids
EVENTS, BATCHES = 200_000, (10, 100)
TABLES = {  # numbers, and the bytes of each text
    "narrow": (2, ()), "numbers": (8, ()), "texts": (2, (10, 10)), "wide": (5, (30, 30, 60)),
}  # fmt: skip


def run(case: str = "") -> Iterator[dict[str, Any]]:
    """A line for each unit."""
    spark = build_session("sharing", "local[1]", key_groups=4)
    with tempfile.TemporaryDirectory(prefix="penstock-sharing-") as folder:
        for name in [case] if case else CASES:
            if name == STAGE:
                yield _stage(Path(folder))
            elif name == EXCHANGE:
                yield from _exchange(spark, Path(folder))
            else:
                yield from _reading(spark, Path(folder), name)
    spark.stop()


def _stage(folder: Path) -> dict[str, Any]:
    """What sharing costs a batch more than reading again, where more batches have the same rows."""
    more_s = {}
    for batches in BATCHES:
        events = folder / f"events-{batches}"
        Events(rate=PER_S).write(events, EVENTS, batches, csv=True)
        again_s, shared_s = (
            mean(_program_s(events, folder / f"{batches}-{unit}-{turn}", unit) for turn in range(2))
            for unit in (1.0, 0.0)
        )
        more_s[batches] = shared_s - again_s
    few, many = BATCHES
    found = (more_s[many] - more_s[few]) / (many - few)
    return {
        "name": "stage", "baseline": STAGE_S, "ours": round(found, 3), "unit": "s",
        "ratio": round(STAGE_S / found, 2) if found > 0 else None,
        "conditions": f"baseline: as it is now; ours: processor time of {', '.join(QUERIES)} of "
        f"Nexmark over {EVENTS:,} events as CSV, in {few} and in {many} batches",
    }  # fmt: skip


def _program_s(events: Path, out: Path, exchange: float) -> float:
    """Processor time of a topology whose exchanges cost all or nothing."""
    code = (
        "import sys; from pathlib import Path; from penstock.fusion import reading\n"
        f"reading.WRITE = reading.FETCH = reading.Unit(*3 * ({exchange},))\n"
        f"reading.STAGE_S = {exchange}\n"
        "from benchmarks.nexmark.worker import main\n"
        f"took = main('penstock', Path({str(events)!r}), Path({str(out)!r}), {QUERIES!r})\n"
        "print(took['cpu_s'])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return float(done.stdout.splitlines()[-1])


def _reading(spark: SparkSession, folder: Path, format_: str) -> Iterator[dict[str, Any]]:
    seen, took = [], []
    for table, (numbers, texts) in TABLES.items():
        path, schema = _written(spark, folder, table, format_)
        every = len(numbers_and_texts(numbers, texts))
        for columns in {1, every // 2, every}:
            rows = spark.read.schema(schema).format(format_).load(str(path))
            chosen = rows.columns[:columns] if columns < every else rows.columns
            chosen = rows.columns[-columns:] if columns == every // 2 else chosen
            touched = chosen if FORMATS[format_].by_column else rows.columns
            seen.append([1.0, len(chosen), _bytes(touched)])
            took.append(_least(rows.select(*chosen)))
    yield from _fitted(f"read {format_}", FORMATS[format_].read, seen, took)


def _exchange(spark: SparkSession, folder: Path) -> Iterator[dict[str, Any]]:
    """Writing is what one consumer of an exchange takes above a read, less a fetch; fetching what
    each consumer more takes."""
    seen, wrote, fetched = [], [], []
    for table in TABLES:
        path, schema = _written(spark, folder, table, "parquet")
        rows = spark.read.schema(schema).format("parquet").load(str(path))
        read_s = _least(rows)
        one_s, many_s = (_least(_shared(rows, consumers)) for consumers in (2, 6))
        fetch_s = (many_s - one_s) / 4
        seen.append([1.0, len(rows.columns), _bytes(rows.columns)])
        fetched.append(fetch_s)
        wrote.append(one_s - read_s - 2 * fetch_s)
    yield from _fitted("write", WRITE, seen, wrote)
    yield from _fitted("fetch", FETCH, seen, fetched)


def _shared(rows: DataFrame, consumers: int) -> DataFrame:
    """Consumers that use one column each, behind what keeps exchanges alike in a topology."""
    shared = rows.repartitionById(4, F.spark_partition_id() % 4)
    nulls = [F.col(name).isNull() for name in rows.columns]
    barrier = [F.count_if(_all(nulls)).alias("empty"), F.count(F.lit(1)).alias("rows")]
    parts = [
        shared.observe(f"c{n}", *barrier).select(F.col(rows.columns[0]).cast("string").alias("a"))
        for n in range(consumers)
    ]
    made = parts[0]
    for part in parts[1:]:
        made = made.unionAll(part)
    return made


def _all(tests: list[Any]) -> Any:
    found = tests[0]
    for test in tests[1:]:
        found &= test
    return found


def _least(frame: DataFrame) -> float:
    """Processor seconds of the tasks of a job, once it is warm."""
    return min(_tasks_s(frame) for _ in range(REPEATS))


def _tasks_s(frame: DataFrame) -> float:
    """What the JVM compiles meanwhile, other threads do."""
    spark, group = frame.sparkSession, f"sharing-{next(_NUMBERS)}"
    spark.sparkContext.setJobGroup(group, group)
    frame.write.format("noop").mode("overwrite").save()
    ids = [stage for job in handles.jobs_of_group(spark, group) for stage in job.stage_ids]
    tasks = (
        handles.stage_tasks(spark, stage.id, stage.attempt)
        for stage in handles.stages(spark, tuple(ids))
    )
    return sum(float(one.cpu_time_ns.sum()) for one in tasks) / 1e9


def numbers_and_texts(numbers: int, texts: tuple[int, ...]) -> list[str]:
    """Names, with the bytes of a value in a row of Spark's."""
    return [f"n{n}_8" for n in range(numbers)] + [f"t{n}_{8 + t}" for n, t in enumerate(texts)]


def _bytes(columns: list[str]) -> float:
    return float(sum(int(name.split("_")[1]) for name in columns))


def _written(spark: SparkSession, folder: Path, table: str, format_: str) -> tuple[Path, Any]:
    numbers, texts = TABLES[table]
    path = folder / f"{table}.{format_}"
    columns = [
        F.expr(f"xxhash64(id, {n})").alias(name) if name[0] == "n"
        else F.expr(f"substr(sha2(cast(id + {n} as string), 256), 1, {texts[n - numbers]})").alias(
            name
        )
        for n, name in enumerate(numbers_and_texts(numbers, texts))
    ]  # fmt: skip
    rows = spark.range(0, ROWS, 1, 1).select(*columns)
    if not path.exists():
        rows.write.format(format_).save(str(path))
    return path, rows.schema


def _fitted(
    what: str, unit: Unit, seen: list[list[float]], took: list[float]
) -> Iterator[dict[str, Any]]:
    """What was measured beside what is told by units; then each unit, fitted."""
    for (_, values, size_bytes), took_s in zip(seen, took, strict=True):
        expected_s = ROWS * unit.of(int(values), size_bytes)
        yield {
            "name": f"{what}, {values:.0f} columns of {size_bytes:.0f} bytes a row",
            "baseline": round(expected_s, 3), "ours": round(took_s, 3), "unit": "s",
            "ratio": round(expected_s / took_s, 2) if took_s > 0 else None,
            "conditions": f"baseline: by the units; {ROWS:,} rows, processor time",
        }  # fmt: skip
    found = _least_squares(np.array(seen), np.array(took) / ROWS)
    for name, value in zip(("row_s", "value_s", "byte_s"), found, strict=True):
        known = getattr(unit, name)
        yield {
            "name": f"{what}: {name}", "baseline": known, "ours": float(f"{value:.2g}"),
            "unit": "s", "ratio": round(known / value, 2) if value else None,
            "conditions": "baseline: as it is now; ours: fitted to the lines above",
        }  # fmt: skip


def _least_squares(seen: Any, took: Any) -> Any:
    """The best fit with no unit below zero: that of some columns, and zero for the others."""
    best, least = np.zeros(seen.shape[1]), float(np.sum(took**2))
    for size in range(1, seen.shape[1] + 1):
        for some in map(list, combinations(range(seen.shape[1]), size)):
            units, *_ = np.linalg.lstsq(seen[:, some], took, rcond=None)
            left = float(np.sum((seen[:, some] @ units - took) ** 2))
            if units.min() >= 0 and left < least:
                best, least = np.zeros(seen.shape[1]), left
                best[some] = units
    return best
