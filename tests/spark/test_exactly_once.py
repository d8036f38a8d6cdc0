"""kill -9 at random moments: the outputs equal a batch recomputation, row for row."""

import os
import random
import signal
import time
from pathlib import Path

import pytest

from spark import stateful_run
from spark.killed_program import Program, await_executors, finish
from spark.recomputed import compare

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("no_session")]


@pytest.fixture
def seed(request: pytest.FixtureRequest) -> int:
    """A new one each time, printed when the test fails, or PENSTOCK_TEST_SEED."""
    chosen = int(os.environ.get("PENSTOCK_TEST_SEED", random.randrange(2**32)))
    print(f"PENSTOCK_TEST_SEED={chosen}")
    return chosen


@pytest.mark.long  # the soak kills a driver in every run
def test_driver_killed_at_random_moments(tmp_path: Path, seed: int, kills: int) -> None:
    moments = random.Random(seed)
    for _ in range(kills):
        program = Program(stateful_run.__file__, tmp_path, "local[2]")
        for _ in range(moments.randint(1, 3)):
            assert program.await_line("batch", "finished").startswith("batch"), _errors(tmp_path)
        time.sleep(moments.uniform(0.0, 0.8))  # the random moment itself, no synchronisation
        program.kill()
    finish(stateful_run, tmp_path, "local[2]")
    compare(tmp_path, stateful_run.STREAM, stateful_run.WATERMARK_S)


@pytest.mark.long  # the soak kills executors in every run
def test_executors_killed_at_random_moments(tmp_path: Path, seed: int, kills: int) -> None:
    moments = random.Random(seed)
    program = Program(stateful_run.__file__, tmp_path, "embedded")
    for _ in range(min(kills, 4)):
        for _ in range(moments.randint(1, 3)):
            assert program.await_line("batch", "finished").startswith("batch"), _errors(tmp_path)
        time.sleep(moments.uniform(0.0, 0.8))
        os.kill(moments.choice(await_executors(program.process.pid)), signal.SIGKILL)
    assert program.await_line("finished") == "finished", _errors(tmp_path)
    program.close()
    finish(stateful_run, tmp_path, "local[2]")
    compare(tmp_path, stateful_run.STREAM, stateful_run.WATERMARK_S)


@pytest.fixture
def kills(request: pytest.FixtureRequest) -> int:
    """Kills of each test; more with --long."""
    return 25 if request.config.getoption("--long") else 1


def _errors(directory: Path) -> str:
    return (directory / "stderr.txt").read_text()[-3000:]
