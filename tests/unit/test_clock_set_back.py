"""A machine's clock that is set back an hour: nothing waits for that hour to pass again."""

import ast
import math
import os
import re
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from contract.gate_world import Clock, World
from penstock.control.clock import WallClock
from penstock.errors import Unavailable
from penstock.model.arrivals import Arrivals
from penstock.model.sources import Streams
from penstock.model.topology import Source
from penstock.spark.channels.entries import Entry
from penstock.spark.measure import attached
from penstock.spark.measure.apart import since_clock_was_set
from penstock.spark.measure.attached import AttachedMeasurer
from penstock.spark.measure.attached_batches import read_batches
from penstock.spark.measure.ledger import LedgerEntry, summarise
from penstock.spark.sources import gate
from penstock.spark.sources.backends.backend import Malformed
from penstock.spark.sources.backends.directory import Directory
from penstock.spark.sources.batch_choice import BatchChoices
from penstock.spark.sources.control import Control
from penstock.spark.sources.dead_letters import letter_file, write_letters
from penstock.spark.sources.reader import LOGS
from penstock.spark.sources.running.kinds import running_source
from penstock.spark.sources.running.source import SourceRates
from penstock.spark.sources.status import write_status
from penstock.spark.sources.watch import SourceWatch

# What is stamped for people, compared over restarts, or with stamps of Spark and of brokers; by
# file, function and number of uses.
STAMPS = {
    "cli/demo_road.py _open": 1,
    "control/clock.py": 1,
    "spark/channels/log.py Channel.publish": 1,
    "spark/host/host.py Host._say": 1,
    "spark/measure/apart.py ApartMeasurer.__init__": 1,
    "spark/measure/apart.py ApartMeasurer.observe": 1,
    "spark/measure/attached.py AttachedMeasurer.__init__": 1,
    "spark/measure/attached.py AttachedMeasurer.observe": 1,
    "spark/measure/together.py SparkMeasurer.__init__": 1,
    "spark/measure/together.py SparkMeasurer.observe": 1,
    "spark/routes/exchange.py RouteExchange.report": 1,
    "spark/run/apart.py RunningApart._batch_written": 1,
    "spark/run/apart.py RunningApart._start": 1,
    "spark/run/explain.py explain": 1,
    "spark/run/together.py RunningTopology._start": 1,
    "spark/run/together.py RunningTopology._start_query": 1,
    "spark/run/together.py RunningTopology._written": 2,
    "spark/sources/backends/generators.py GeneratorsBackend.latest": 1,
    "spark/sources/gate.py Gate.__init__": 1,
    "spark/sources/gate.py Gate._admitted": 1,
    "spark/sources/gate.py Gate._forget_letters": 1,
    "spark/sources/gate.py Gate.admit": 1,
    "spark/sources/generator_source.py GeneratorReader._available": 1,
}
THAT_CLOCK = re.compile(
    r"time\.(time|time_ns|localtime|gmtime|ctime|strftime|clock_gettime|clock_gettime_ns)"
    r"|(datetime\.)?(datetime|date)\.(now|utcnow|today)"
)
PACKAGE = Path(attached.__file__).parents[2]


class Machine:
    """The machine's two clocks."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now_s, self.set_by_s = 5_000.0, 1_700_000_000.0
        monkeypatch.setattr(time, "time", lambda: self.now_s + self.set_by_s)
        monkeypatch.setattr(time, "monotonic", lambda: self.now_s)

    def set_back(self) -> None:
        self.set_by_s -= 3600.0


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Machine:
    return Machine(monkeypatch)


def uses(tree: ast.AST, inside: tuple[str, ...] = ()) -> Iterator[str]:
    """The functions that read the clock that can be set, as often as they do."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Attribute) and THAT_CLOCK.fullmatch(ast.unparse(node)):
            yield ".".join(inside)
        of_time = isinstance(node, ast.ImportFrom) and node.module == "time"
        renamed = isinstance(node, ast.Import | ast.ImportFrom) and any(
            one.name in ("time", "datetime", "date") and one.asname for one in node.names
        )
        if of_time or renamed:
            yield ".".join((*inside, "import"))  # under other names it could not be found
        named = isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        yield from uses(node, (*inside, node.name) if named else inside)


def test_only_stamps_are_made_by_the_clock_that_can_be_set() -> None:
    reading = Counter(
        f"{file.relative_to(PACKAGE)} {function}".strip()
        for file in PACKAGE.rglob("*.py")
        for function in uses(ast.parse(file.read_text(encoding="utf-8")))
    )
    assert reading == STAMPS, "a duration is measured by time.monotonic()"


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    clock = Clock()
    clock.set_by_s = 1_700_000_000.0
    monkeypatch.setattr(gate, "time", clock)
    return World(tmp_path, clock)


@pytest.mark.parametrize("set_by_s", [-3600.0, 3600.0])
def test_a_backend_that_is_away_is_asked_again_after_its_pause(
    world: World, set_by_s: float
) -> None:
    world.shelf.rows, world.shelf.away = {"a": 5}, True
    assert world.admit() == {}
    world.clock.set_by_s += set_by_s
    world.shelf.away = False
    assert world.admit() == {}, "not earlier either"
    world.clock.now_s += gate.FIRST_PAUSE_S
    assert world.admit() == {"a": (0, 5)}


@pytest.mark.parametrize("set_by_s", [-3600.0, 3600.0])
def test_dead_letters_are_looked_at_in_their_period(
    world: World, tmp_path: Path, set_by_s: float
) -> None:
    def put(seq: int) -> Path:
        file = letter_file(tmp_path / "dead", 0, seq, 0)
        write_letters(file, [Malformed("a", "0", "bad", b"x")])
        os.utime(file, (-1e9, -1e9))
        return file

    first = put(1)
    world.gate.committed(1)
    assert not first.exists()
    second = put(2)
    world.clock.set_by_s += set_by_s
    world.gate.committed(2)
    assert second.exists(), "not earlier either"
    world.clock.now_s += gate.FORGET_PERIOD_S
    world.gate.committed(2)
    assert not second.exists()


def test_a_folder_is_listed_only_when_it_changes(machine: Machine, tmp_path: Path) -> None:
    """Whatever the clock of its file system says: here it is an hour ahead, and an hour behind."""
    directory = Directory(tmp_path)
    for ahead_s in (3600.0, -3600.0):
        changed_s = time.time() + ahead_s
        os.utime(tmp_path, (changed_s, changed_s))
        assert directory.stamp() is None, "names may still come in the same tick"
        machine.now_s += 1.0
        assert directory.stamp() == tmp_path.stat().st_mtime_ns


def test_the_time_of_the_loop_goes_on(machine: Machine) -> None:
    clock = WallClock()
    before_s = clock.now_s()
    machine.set_back()
    machine.now_s += 5.0
    assert clock.now_s() == pytest.approx(before_s + 5.0)


def test_an_attached_query_is_measured_on(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_jobs(*_: Any) -> None:
        raise Unavailable("no jobs.")

    monkeypatch.setattr(attached, "NodeReader", lambda _: SimpleNamespace(take=lambda missing: ()))
    monkeypatch.setattr(attached.handles, "jobs_of_group", no_jobs)
    monkeypatch.setattr(attached.handles, "trigger_interval_s", lambda _: 0.0)
    query: Any = SimpleNamespace(
        id="q", runId="run-0", name="q", recentProgress=[],
        status={"isTriggerActive": False, "isDataAvailable": False},
    )  # fmt: skip
    session: Any = None
    measurer = AttachedMeasurer(session, lambda: [query], 5.0)
    machine.set_back()
    machine.now_s += 5.0
    seen = measurer.observe()
    assert seen is not None
    assert seen.period_s == pytest.approx(5.0)
    for number in range(1, 50):
        query.runId = f"run-{number}"
        machine.now_s += 5.0
        measurer.observe()
    assert len(measurer._followed) == len(measurer._intervals_s) == 1, "ended runs are forgotten"


def test_batches_after_it_are_read() -> None:
    def report(batch: int, at: str) -> dict[str, Any]:
        took = {"addBatch": 900, "triggerExecution": 1000}
        return {"batchId": batch, "timestamp": at, "durationMs": took, "numInputRows": 5}

    reports = [report(4, "2026-01-01T13:00:00Z"), report(5, "2026-01-01T12:00:05Z")]
    found = read_batches("q", reports, None, 0.0)
    assert [batch.batch_id for batch in found] == [4, 5]
    assert found[1].gathered_s == 0.0


def test_latency_is_never_below_nothing() -> None:
    latency = summarise([LedgerEntry("q", 0, (Arrivals(10, 3600.0, 3601.0),), 5.0)], 5.0)
    assert latency is not None
    assert (latency.mean_s, latency.max_s, latency.p95_s) == (0.0, 0.0, 0.0)


def test_rates_and_statuses_of_sources_go_on(tmp_path: Path) -> None:
    folder = tmp_path / "reports" / LOGS / "0"
    folder.mkdir(parents=True)

    def count(at_s: float, rows: int) -> None:
        write_status(folder, {"at_s": at_s, "began_s": 1.0, "arrived_rows": rows})

    count(9_000.0, 7)
    watch = SourceWatch(tmp_path, of_new_run=True)
    assert watch.arrived() == {}, "said by a reader of an earlier run"
    source = Source("reports", Streams(files="in", schema="n BIGINT"))
    rates = SourceRates({"reports": running_source(source, watch=watch)})
    for at_s, rows in ((10_000.0, 100), (10_001.0, 300), (6_402.0, 500), (6_403.0, 900)):
        count(at_s, rows)
        rate_per_s, _ = rates.take(at_s)
    assert rate_per_s == pytest.approx(400.0)


def test_the_next_batch_comes_at_its_interval(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    slept: list[float] = []
    monkeypatch.setattr(time, "sleep", slept.append)
    choices = BatchChoices("s")
    monkeypatch.setattr(choices.control, "read", lambda: Control(interval_s=10.0))
    assert not choices.waits()
    choices.offset({}, lambda share: 0)
    machine.set_by_s += 2.0 - 3600.0
    machine.now_s += 9.0
    assert choices.waits(), "not earlier either"
    machine.now_s += 1.0
    assert not choices.waits()


def test_bulks_before_it_are_left_out() -> None:
    entries = [
        Entry(number, "w", number, number, (), at_s)
        for number, at_s in enumerate([7200.0, 7201.0, 3602.0, 3603.0])
    ]
    assert [entry.sequence for entry in since_clock_was_set(entries)] == [2, 3]
    assert len(since_clock_was_set(entries[:2])) == 2
    assert math.isclose(entries[0].at_s, 7200.0)
