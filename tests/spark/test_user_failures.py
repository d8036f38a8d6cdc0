"""A user's function or query that fails: what is raised names it, its line and its batch."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from penstock import ForeachBatch, Generator, Memory, Topology, constant
from penstock.errors import PenstockError
from penstock.spark.run.together import RunningTopology

pytestmark = pytest.mark.spark
KEY_GROUPS = 2
SELECTED = "SELECT key, value FROM rows"


def with_udf(rows: DataFrame) -> DataFrame:
    def boom(value):  # type: ignore[no-untyped-def]  # without hints it is a plain UDF
        raise ValueError("boom\nand more")

    return rows.select(F.udf(boom, "double")("value").alias("v"))


def with_pandas(rows: DataFrame) -> DataFrame:
    def halved(values: pd.Series) -> pd.Series:
        return values / len({}[1])

    return rows.select(F.pandas_udf(halved, "double")("value").alias("v"))  # type: ignore[call-overload]


def with_arrow(rows: DataFrame) -> DataFrame:
    def mapped(batches: Iterator[Any]) -> Iterator[Any]:
        raise LookupError("no such road")
        yield from batches

    return rows.select("key").mapInArrow(mapped, "key BIGINT")


def divided(rows: DataFrame) -> DataFrame:
    return rows.select((F.lit(1) / (F.col("key") * 0)).alias("v"))


def of_a_batch(rows: DataFrame, batch_id: int) -> None:
    raise RuntimeError("the database is away")


def failure(step: str | Callable[..., Any], session: SparkSession, folder: Path, sink: Any) -> str:
    made = Topology("road", max_latency="5s")
    made.source("rows", Generator(constant(100.0), rows=50))
    made.add("step", step, "rows")  # type: ignore[arg-type]
    made.sink("out", "step", sink)
    running = RunningTopology(made, session, folder / "checkpoint")
    with pytest.raises(PenstockError) as error, running:
        running.wait(120)
    assert error.value.__cause__ is not None  # what --debug shows
    return str(error.value)


@pytest.mark.parametrize(
    ("step", "words"),
    [
        (with_udf, "operator 'step': ValueError: boom (test_user_failures.py"),
        (with_pandas, "operator 'step': KeyError: 1 (test_user_failures.py"),
        (with_arrow, "operator 'step': LookupError: no such road (test_user_failures.py"),
        (divided, "operator 'step': [DIVIDE_BY_ZERO] Division by zero"),
        ("SELECT 1 / (key * 0) AS v FROM rows", "operator 'step': [DIVIDE_BY_ZERO] Divis"),
    ],
    ids=["udf", "pandas", "arrow", "frame", "sql"],
)
def test_a_failing_operator_is_named_with_its_message(
    step: Any, words: str, session: SparkSession, tmp_path: Path
) -> None:
    text = failure(step, session, tmp_path, Memory())
    assert text.startswith(f"query 'road' failed in batch 0: {words}")
    assert "\n" not in text


def test_a_failing_sink_is_named_with_its_message(session: SparkSession, tmp_path: Path) -> None:
    text = failure(SELECTED, session, tmp_path, ForeachBatch(of_a_batch))
    line = of_a_batch.__code__.co_firstlineno + 1
    assert text == (
        "query 'road' failed in batch 0: sink 'out': function: RuntimeError: the database is away "
        f"(test_user_failures.py, line {line})"
    )
