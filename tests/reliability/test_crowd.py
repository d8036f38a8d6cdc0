"""A crowd of streams that starts with a backlog, grows, bursts together and leaves, under kills."""

import json
import random
import shutil
import signal
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from brokers import redis_server
from contract.gate_world import Clock
from penstock.errors import Unavailable
from penstock.sources import Backend
from penstock.spark.sources import gate as gate_module
from penstock.spark.sources.backends.files import FilesBackend

from .crowd import BOUND_S, PERIOD_S, Append, Crowd

FEW, MANY = 120, 20_000
MEMORY = Path("/dev/shm")  # everything is synced all the time
RATE_PER_S, BACKLOG = 2, 20


@pytest.fixture
def room(tmp_path: Path) -> Iterator[Path]:
    made = Path(tempfile.mkdtemp(dir=MEMORY)) if MEMORY.is_dir() else tmp_path
    yield made
    shutil.rmtree(made)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(gate_module, "time", made)
    return made


def files(folder: Path) -> Append:
    folder.mkdir()

    def append(rows: dict[str, tuple[int, int]]) -> None:
        for name, (first, end) in rows.items():
            lines = "".join(json.dumps({"seq": seq}) + "\n" for seq in range(first, end))
            with (folder / name).open("a", encoding="utf-8") as file:
                file.write(lines)

    return append


@pytest.mark.parametrize(
    ("count", "seed"),
    [(FEW, 1), *(pytest.param(FEW, seed, marks=pytest.mark.long) for seed in range(2, 12)),
     pytest.param(MANY, 3, marks=pytest.mark.long)],
)  # fmt: skip
def test_a_crowd_of_files(room: Path, clock: Clock, count: int, seed: int) -> None:
    options = {"directory": str(room / "in"), "format": "json", "pattern": "*"}

    def make() -> Backend:
        return FilesBackend.from_options(options)

    _survive(room, clock, make, files(room / "in"), count, seed)


@pytest.fixture
def server(room: Path) -> Iterator[redis_server.RedisServer]:
    if (reason := redis_server.missing()) is not None:
        pytest.skip(reason)
    (room / "redis").mkdir()
    with redis_server.redis_server(room / "redis") as started:
        yield started


@pytest.mark.parametrize("count", [FEW, pytest.param(MANY, marks=pytest.mark.long)])
def test_a_crowd_of_redis_streams(
    room: Path, clock: Clock, server: redis_server.RedisServer, count: int
) -> None:
    from penstock.spark.sources.backends.redis_streams import RedisBackend

    client = server.client()

    def append(rows: dict[str, tuple[int, int]]) -> None:
        pipeline = client.pipeline(transaction=False)
        for name, (first, end) in rows.items():
            for seq in range(first, end):
                pipeline.xadd(name, {"value": json.dumps({"seq": seq})})
        pipeline.execute()

    def make() -> Backend:
        return RedisBackend.from_options({"url": server.url, "keys": "s*", "group": "crowd"})

    _survive(room, clock, make, append, count)
    lags = [client.xinfo_groups(name)[0]["lag"] for name in ("s100", "s15-0")]
    assert lags == [0, 0], "tools outside see that all is read"
    client.close()


def _survive(
    folder: Path, clock: Clock, make: Callable[[], Backend], append: Append, count: int,
    seed: int = 3,
) -> None:  # fmt: skip
    """The course of a minute: what comes, what bursts, what leaves, and how late it is read."""
    lane_per_s = max(60, count * RATE_PER_S // 20)  # some tens of lanes, however many streams
    crowd = Crowd(folder, clock, make, append, RATE_PER_S, lane_per_s, random.Random(seed))
    crowd.write({f"s{n}": BACKLOG for n in range(count)})
    late = {}
    for second in range(60):
        if 15 <= second < 20:  # in hundreds, when they are many
            crowd.write({f"s{second}-{n}": BACKLOG // 4 for n in range(count // 50)})
        if 45 <= second < 50:
            some = max(1, count // 200)
            first = (second - 45) * some
            crowd.leave([f"s{n}" for n in range(first, first + some)])
        told = crowd.go_on(3 if 28 <= second < 38 else 1)
        # A gate that was killed learns rates anew for half a period before it opens lanes.
        learning = second - crowd.killed_at <= 2 * BOUND_S
        age_s = crowd.latest_s() - (0.5 * PERIOD_S + 1.0 if learning else 0.0)
        if second > 2 * BOUND_S and age_s > BOUND_S:
            late[second] = age_s
    assert late == {}, "nothing waits beyond the bound while lanes may be opened"
    assert len(told["lanes"]) < 60
    while told["waiting_rows"]:
        told = crowd.go_on(0)
    crowd.close()
    crowd.verify()
    assert crowd.kills >= 3


def test_a_redis_that_hangs_is_waited_for(server: redis_server.RedisServer) -> None:
    """It keeps its connections and answers nobody, which is not the same as being away."""
    from penstock.spark.sources.backends.redis_streams import RedisBackend

    client = server.client()
    for seq in range(10):
        client.xadd("s0", {"value": json.dumps({"seq": seq})})
    backend = RedisBackend.from_options({"url": server.url, "keys": "s*", "timeout_s": 0.1})
    first = _answered(lambda: backend.first(["s0"]))
    server.signal(signal.SIGSTOP)
    for _ in range(2):
        with pytest.raises(Unavailable):
            backend.latest(["s0"], first)
    server.signal(signal.SIGCONT)
    again = _answered(lambda: backend.latest(["s0"], first))
    assert again.waiting_rows.tolist() == [10]
    client.close()


def _answered(ask: Callable[[], Any]) -> Any:
    """The first answer that comes in time, which on a busy machine need not be the very first."""
    for _ in range(1_000):
        with suppress(Unavailable):
            return ask()
    return ask()
