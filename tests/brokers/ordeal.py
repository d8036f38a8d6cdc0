"""One course of kills that any broker must get through."""

import os
import random
import signal
import time
from collections.abc import Callable
from pathlib import Path

from brokers import broker_run
from brokers.verifier import rows_in_order, verify
from brokers.writing import Writer
from spark.killed_program import Program, await_executors, finish, processes_below

RUNNER = b"pyspark.sql.streaming.python_streaming_source_runner"


def survive(
    directory: Path, moments: random.Random, writer: Writer, restart_server: Callable[[], None],
    rounds: int, executors: bool,
) -> None:  # fmt: skip
    """Executors if asked, source runner, server and driver die; then the rest is worked off."""
    redirected = 0
    for number in range(rounds):
        # An executor is a process of its own on a cluster only, which takes longer to start.
        embedded = executors and number == 0
        program = Program(broker_run.__file__, directory, "embedded" if embedded else "local[2]")
        redirected += _await_batches(program, moments)
        if embedded:
            os.kill(moments.choice(await_executors(program.process.pid)), signal.SIGKILL)
            redirected += _await_batches(program, moments)
        for runner in list(processes_below(program.process.pid, RUNNER)):
            os.kill(runner, signal.SIGKILL)
        redirected += _await_batches(program, moments)
        with writer.paused:
            restart_server()
        redirected += _await_batches(program, moments)
        program.kill()
    writer.stop()
    finish(broker_run, directory, "local[2]")
    assert redirected > 0, "no stream was ever redirected"
    _check(directory / "out", writer)


def _check(out: Path, writer: Writer) -> None:
    # Streams the source finds are read to the end; a declared one may leave at any row.
    whole = {name: name.startswith("s") for name in writer.counts}
    verify(out, writer.counts, whole)
    left = [name for name in rows_in_order(out) if not whole[name]]
    assert left, "no declared stream was read"


def _await_batches(program: Program, moments: random.Random) -> int:
    """A few batches, then a random moment; the most streams redirected that were told of."""
    most = 0
    for _ in range(moments.randint(1, 2)):
        line = program.await_line("batch", "finished")
        assert line.startswith("batch"), program.errors()
        most = max(most, int(line.split()[2]))
    time.sleep(moments.uniform(0.0, 0.6))  # the random moment itself, no synchronisation
    return most
