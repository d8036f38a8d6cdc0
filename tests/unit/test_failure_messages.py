"""What a user reads when a function or a query of theirs fails inside Spark."""

from typing import Any

import pytest
from pyspark import SparkContext
from pyspark.errors import PySparkException

from penstock import Generator, Memory, Topology, constant
from penstock.errors import InvalidInput
from penstock.spark.compile.topology_file import load_topology
from penstock.spark.handles.messages import failure_of, first_line
from penstock.spark.run.query_restarts import query_failure
from penstock.spark.sinks.batch_writer import BatchFailure

WORKER = """[PYTHON_EXCEPTION] An exception was thrown from the Python worker:
Traceback (most recent call last):
  File "{file}", line {line}, in looked_up
    raise ValueError("boom")
ValueError: boom
second line of it

JVM stacktrace:
org.apache.spark.SparkException: Job aborted
"""
SQL = """[DIVIDE_BY_ZERO] Division by zero. Use `try_divide` to tolerate it. SQLSTATE: 22012
== SQL (line 1, position 8) ==
SELECT 1 / value AS v FROM rows
       ^^^^^^^^^
"""
CALLED = """[DIVIDE_BY_ZERO] Division by zero. SQLSTATE: 22012
== DataFrame ==
"divide" was called from
{file}:{line}
"""


class FromSpark(PySparkException):
    """An exception as Spark would hand it over, of which only the text matters."""

    def __init__(self, text: str) -> None:
        Exception.__init__(self, text)
        self._text = text

    def __str__(self) -> str:
        return self._text

    def getMessage(self) -> str:
        return self._text

    def getCondition(self) -> str | None:
        return None


def looked_up(value: float) -> float:
    raise ValueError("boom")


def enriched(rows: Any) -> Any:
    return rows.select(looked_up(rows))


def road() -> Topology:
    made = Topology("road", max_latency="5s")
    made.source("rows", Generator(constant(10.0)))
    made.add("enriched", enriched, "rows")
    made.add("shares", "SELECT 1 / value AS v FROM rows", "rows")
    made.sink("out", "enriched", Memory())
    made.sink("out2", "shares", Memory())
    return made


LINE = looked_up.__code__.co_firstlineno + 1


def failed(text: str, sink: str | None = None) -> str:
    error = FromSpark(text)
    return str(query_failure("road", error, BatchFailure(3, error, sink), road()))


def test_a_user_function_is_told_with_operator_batch_message_and_line() -> None:
    assert failed(WORKER.format(file=__file__, line=LINE)) == (
        "query 'road' failed in batch 3: operator 'enriched': ValueError: boom "
        f"(test_failure_messages.py, line {LINE})"
    )


def test_an_error_in_a_query_is_told_with_its_operator() -> None:
    text = failed(SQL)
    assert text.startswith("query 'road' failed in batch 3: operator 'shares': [DIVIDE_BY_ZERO] ")


def test_an_error_of_a_frames_method_is_told_with_the_users_line() -> None:
    text = failed(CALLED.format(file=__file__, line=enriched.__code__.co_firstlineno + 1))
    assert "operator 'enriched': [DIVIDE_BY_ZERO] Division by zero." in text
    assert "(test_failure_messages.py, line" in text


def test_a_function_of_a_sink_is_told_with_its_line() -> None:
    try:
        looked_up(1.0)
    except ValueError as caught:
        text = str(query_failure("road", caught, BatchFailure(0, caught, "out"), road()))
    assert text == (
        "query 'road' failed in batch 0: sink 'out': function: ValueError: boom "
        f"(test_failure_messages.py, line {LINE})"
    )


def test_what_we_said_in_a_worker_stands_for_itself() -> None:
    text = WORKER.format(file=__file__, line=LINE) + "penstock.errors.PenstockError: it is full."
    assert failure_of(FromSpark(text)).said == "it is full."


def test_what_wraps_an_error_gives_way_to_it() -> None:
    text = "Job aborted due to stage failure: Task 0 failed\norg.X: " + SQL
    assert first_line(FromSpark(text)).startswith("[DIVIDE_BY_ZERO]")
    assert first_line(FromSpark("plain words\nmore")) == "plain words"


def test_what_the_jvm_raised_stands_for_the_call_that_failed() -> None:
    text = (
        "An error occurred while calling None.org.apache.spark.api.java.JavaSparkContext.\n"
        ": org.apache.spark.SparkException: Could not parse Master URL: 'x'\n\tat org.apache"
    )
    assert first_line(RuntimeError(text)) == "SparkException: Could not parse Master URL: 'x'"


@pytest.mark.parametrize(
    "line", ["f = F.udf(lambda v: v, 'double')", "c = F.col('a')"], ids=["udf", "column"]
)
def test_what_needs_spark_while_a_file_is_read_is_told_with_what_to_write(
    line: str, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Tests before this one may have left a session in the process, where a user has none yet.
    monkeypatch.setattr(SparkContext, "_active_spark_context", None)
    file = tmp_path / "road.py"
    file.write_text(f"from pyspark.sql import functions as F\n{line}\n")
    with pytest.raises(InvalidInput) as error:
        load_topology(f"{file}:road")
    assert str(error.value).startswith(f"{file}, line 2: this needs Spark, which starts once")
    assert "@F.udf(DoubleType())" in str(error.value)
