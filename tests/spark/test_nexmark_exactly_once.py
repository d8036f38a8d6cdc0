"""Nexmark's queries under rescales and kill -9: the rows that plain Python finds in all events."""

import os
import random
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from benchmarks.nexmark.events import SHARES, Events
from benchmarks.nexmark.queries import BY_NAME
from spark import nexmark_run
from spark.killed_program import Program, await_executors, finish
from spark.test_nexmark import compare

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("no_session")]

EVENTS, FILES, PER_S = 9_600, 24, 160.0
ARRIVE_EVERY_S = 5.0
ROUNDS = 2


@pytest.mark.long  # minutes: all queries on executors that start cold
def test_all_queries_survive_kills_and_rescales(tmp_path: Path) -> None:
    seed = int(os.environ.get("PENSTOCK_TEST_SEED", random.randrange(2**32)))
    print(f"PENSTOCK_TEST_SEED={seed}")
    moments, events = random.Random(seed), Events(rate=PER_S)
    events.write(tmp_path / "later", EVENTS, FILES)
    with files_arriving(tmp_path / "later", tmp_path / "events"):
        for _ in range(ROUNDS):
            program = Program(nexmark_run.__file__, tmp_path, "embedded")
            await_line(program, moments, "executors 1 -> 2")
            os.kill(moments.choice(await_executors(program.process.pid)), signal.SIGKILL)
            await_line(program, moments, "executors 2 -> 1")
            program.kill()
    finish(nexmark_run, tmp_path, "local[2]")
    compare(tmp_path / "out", BY_NAME, events, EVENTS)


def await_line(program: Program, moments: random.Random, start: str) -> None:
    """Wait for a change and a batch after it, then for a random moment."""
    for one in (start, "batch"):
        line = program.await_line(one)
        assert line.startswith(one), (line, program.errors())
    time.sleep(moments.uniform(0.0, 3.0))  # the random moment itself, no synchronisation


@contextmanager
def files_arriving(later: Path, now: Path) -> Iterator[None]:
    """Files of all kinds come one after another, each whole; those that are left, at the end."""
    ended = threading.Event()

    def move() -> None:
        for number, name in enumerate(sorted(file.name for file in (later / "bid").iterdir())):
            if number and not ended.is_set():
                ended.wait(ARRIVE_EVERY_S)
            for kind in SHARES:
                (later / kind / name).rename(now / kind / name)

    for kind in SHARES:
        (now / kind).mkdir(parents=True)
    moving = threading.Thread(target=move)
    moving.start()
    try:
        yield
    finally:
        ended.set()
        moving.join()
