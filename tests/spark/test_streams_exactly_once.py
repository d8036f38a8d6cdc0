"""kill -9 of runner, executor and driver while streams come, go and change lanes: each record once.

The verifier knows nothing of positions or lanes: every stream's records carry their own number, and
the outputs must hold each number once, batch by batch in order.
"""

import json
import os
import random
import signal
import threading
import time
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from penstock.spark.sources.dead_letters import read_letters
from penstock.spark.sources.program import StreamsProgram
from spark import streams_run
from spark.killed_program import Program, await_executors, finish, processes_below

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("no_session")]

RUNNER = b"pyspark.sql.streaming.python_streaming_source_runner"


class Writers:
    """Appends numbered records to files until told to stop, torn and broken ones among them."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.folder = folder
        self.written: dict[str, int] = {}
        self.broken: list[tuple[str, bytes]] = []
        self._moments = random.Random(seed)
        self._ended = threading.Event()
        self._closed: set[str] = set()
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._write, daemon=True)
        folder.mkdir()
        for number in range(8):
            self.join(f"s{number}.json")
        self._thread.start()

    def join(self, name: str) -> None:
        with self._lock:
            self.written[name] = 0

    def leave(self, name: str) -> None:
        """Nothing is written to it any more."""
        with self._lock:
            self._closed.add(name)

    def stop(self) -> None:
        self._ended.set()
        self._thread.join()

    def _write(self) -> None:
        while not self._ended.wait(0.2):
            with self._lock:
                for name in self.written:
                    if name not in self._closed:
                        self._append(name, self._moments.randint(0, 12))

    def _append(self, name: str, count: int) -> None:
        with (self.folder / name).open("ab", buffering=0) as file:
            for _ in range(count):
                seq = self.written[name]
                record = json.dumps({"seq": seq, "text": "x" * self._moments.randint(0, 40)})
                data = record.encode() + b"\n"
                cut = self._moments.randint(0, len(data))  # a reader may see half a record
                file.write(data[:cut])
                file.write(data[cut:])
                self.written[name] += 1
                if self._moments.random() < 0.003:
                    bad = b'{"seq": %d, broken' % seq
                    file.write(bad + b"\n")
                    self.broken.append((name, bad))


@pytest.mark.long  # the soak kills runner and driver of streams that join in every run
def test_every_record_once_and_in_order(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    seed = int(os.environ.get("PENSTOCK_TEST_SEED", random.randrange(2**32)))
    print(f"PENSTOCK_TEST_SEED={seed}")
    long = request.config.getoption("--long")  # executors too, which the soak kills in every run
    rounds = 6 if long else 1
    moments = random.Random(seed)
    writers = Writers(tmp_path / "in", seed)
    asked = StreamsProgram(tmp_path / "checkpoint/penstock/sources", ["files"])
    for turn in range(rounds):
        program = Program(streams_run.__file__, tmp_path, "embedded" if long else "local[2]")
        _batches(program, tmp_path, 1)
        writers.join(f"late{turn}.json")
        _batches(program, tmp_path, 1)
        os.kill(_runner(program.process.pid), signal.SIGKILL)
        _batches(program, tmp_path, 2)
        writers.leave(f"s{turn}.json")
        asked.remove(f"s{turn}.json")
        _batches(program, tmp_path, 1)
        if long:
            time.sleep(moments.uniform(0.0, 0.5))  # the random moment itself, no synchronisation
            os.kill(moments.choice(await_executors(program.process.pid)), signal.SIGKILL)
            _batches(program, tmp_path, 2)
        redirected = max(status["redirected"] for status in asked.status())
        time.sleep(moments.uniform(0.0, 0.5))  # likewise
        program.kill()
    assert redirected > 0
    writers.stop()
    finish(streams_run, tmp_path, "local[2]")
    _verify(tmp_path, writers)


def _verify(directory: Path, writers: Writers) -> None:
    found: dict[str, list[int]] = {}
    for batch in sorted((directory / "out").glob("batch=*"), key=lambda p: int(p.name[6:])):
        for file in sorted(batch.glob("*.parquet")):  # a lane is one task and writes one file
            rows = pq.read_table(file).to_pydict()
            for stream, seq in zip(rows["stream"], rows["seq"], strict=True):
                found.setdefault(stream, []).append(seq)
    assert {name: len(seqs) for name, seqs in found.items()} == writers.written
    for name, seqs in found.items():
        assert seqs == list(range(writers.written[name])), name
    letters = read_letters(directory / "dead")
    dead = list(zip(letters["stream"].to_pylist(), letters["raw"].to_pylist(), strict=True))
    assert sorted(dead) == sorted(writers.broken)


def _batches(program: Program, directory: Path, count: int) -> None:
    for _ in range(count):
        assert program.await_line("batch", "finished").startswith("batch"), _errors(directory)


def _runner(driver: int) -> int:
    """The process that runs the source: a child of the driver's JVM."""
    return next(processes_below(driver, RUNNER))


def _errors(directory: Path) -> str:
    return (directory / "stderr.txt").read_text()[-3000:]
