"""What a checkpoint remembers of the operators that make its state."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from penstock.errors import InvalidTopology
from penstock.spark.checkpoint.layout import Checkpoint
from penstock.spark.checkpoint.operators import code_digest

SQL = "SELECT key, avg(value) FROM rows GROUP BY key, window(at, '{} seconds')"


def record(seconds: int = 2, code: str | None = None, spark: str = "4.3.0") -> dict[str, Any]:
    plan = f"Aggregate [key, window]\nProject [{seconds}000000 AS window, key]"
    made = {"plan": plan, "code": code, "written": SQL.format(seconds)}
    return {"spark": spark, "python": "3.11", "operators": {"speeds": made}}


def started(folder: Path, *records: dict[str, Any], accept_changes: bool = False) -> None:
    for one in records:
        with Checkpoint(folder) as checkpoint:
            checkpoint.check_operators(one, accept_changes)


def test_another_window_is_refused_with_what_changed_and_what_to_do(tmp_path: Path) -> None:
    started(tmp_path, record(2), record(2))
    with pytest.raises(InvalidTopology) as error:
        started(tmp_path, record(3))
    text = str(error.value)
    assert text.startswith("operator 'speeds' computes its state differently from checkpoint ")
    assert "window(at, '2 seconds')\" and is " in text
    assert "window(at, '3 seconds')\"; results of both kinds would mix" in text
    assert "--accept-changes" in text
    started(tmp_path, record(2))  # the record is still the one the state was made by


def test_a_change_that_is_accepted_is_the_record_from_then_on(tmp_path: Path) -> None:
    started(tmp_path, record(2))
    started(tmp_path, record(3), accept_changes=True)
    started(tmp_path, record(3))
    with pytest.raises(InvalidTopology, match="computes its state differently"):
        started(tmp_path, record(2))


def test_a_state_function_whose_code_changed_is_refused(tmp_path: Path) -> None:
    started(tmp_path, record(code="a"))
    with pytest.raises(InvalidTopology, match="what it calls has changed"):
        started(tmp_path, record(code="b"))


def test_another_version_of_spark_and_older_checkpoints_go_on(tmp_path: Path) -> None:
    with Checkpoint(tmp_path) as checkpoint:
        checkpoint.check_identity({"topology": "road"})
    started(tmp_path, record(2), record(3, spark="4.4.0"), record(3, spark="4.4.0"))


FUNCTION = '''
LIMIT = 3
def inner(value):
    return value in {"a", "b", "c", "d"}
def state(key, rows, held):
    """Words that say what it does."""
    return [inner(row) for row in rows if row != %s]
'''


def digest_in_another_process(code: str) -> str:
    program = (
        "from penstock.spark.checkpoint.operators import code_digest\n"
        f"scope = {{}}\nexec(compile({code!r}, 'road.py', 'exec'), scope)\n"
        "print(code_digest(scope['state']))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def test_code_has_one_digest_in_every_process_wherever_it_stands() -> None:
    first = digest_in_another_process(FUNCTION % 1)
    assert first == digest_in_another_process("\n\n# a comment\n" + FUNCTION % 1)
    assert first != digest_in_another_process(FUNCTION % 2)
    assert first != digest_in_another_process((FUNCTION % 1).replace('"d"', '"e"'))


def test_a_function_that_is_called_counts() -> None:
    def doubled(value: int) -> int:
        return 2 * value

    def tripled(value: int) -> int:
        return 3 * value

    def made(inner: Any) -> Any:
        return lambda value: inner(value)

    assert code_digest(made(doubled)) == code_digest(made(doubled))
    assert code_digest(made(doubled)) != code_digest(made(tripled))
