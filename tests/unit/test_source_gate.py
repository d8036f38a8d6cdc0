"""The gate of a source against streams kept in memory: who enters, how much, and what is kept."""

from pathlib import Path
from typing import Any

import pytest

from contract.gate_world import Clock, World
from penstock.errors import Unavailable
from penstock.spark.sources import gate as gate_module
from penstock.spark.sources import log as log_module
from penstock.spark.sources.backends.files import FilesBackend


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(gate_module, "time", made)
    return made


def test_what_is_not_admitted_stays_queued_and_counted(tmp_path: Path, clock: Clock) -> None:
    world = World(tmp_path, clock, lanes_max=1)
    world.shelf.rows = {"small": 10, "large": 500, "huge": 5_000}
    assert world.admit() == {"small": (0, 10), "large": (0, 45), "huge": (0, 45)}
    assert world.status["waiting_rows"] == 5_510 - 100
    assert world.admit() == {"large": (45, 95), "huge": (45, 95)}


def test_lanes_open_for_what_streams_bring_and_each_has_its_own_bound(
    tmp_path: Path, clock: Clock
) -> None:
    world = World(tmp_path, clock, drain_below=None)
    world.shelf.rows = {"a": 90, "b": 80, "c": 300}
    assert world.admit() == {"a": (0, 90), "b": (0, 80), "c": (0, 100)}
    assert len(world.status["lanes"]) == 3
    world.program.limit(lanes_max=2)
    clock.now_s += 1.0
    world.shelf.rows = {name: rows + 90 for name, rows in world.shelf.rows.items()}
    world.admit()
    status = world.status
    assert len(status["lanes"]) == 2
    assert status["redirected"] >= 1
    assert "lanes_max is 2" in " ".join(
        reason for made in status["decisions"] for reason in made["reasons"]
    )


def test_restart_goes_on_from_what_spark_knows(tmp_path: Path, clock: Clock) -> None:
    world = World(tmp_path, clock)
    world.shelf.rows = {"a": 60}
    world.admit()
    world.shelf.rows = {"a": 80, "b": 5}
    world.admit()
    world.restart(1)  # the second batch was never in Spark's log
    assert world.admit() == {"a": (60, 80), "b": (0, 5)}
    world.restart(2)
    assert world.admit() == {}


@pytest.mark.parametrize("entries", [256, 2], ids=["batch", "snapshot"])
def test_a_file_made_anew_while_nobody_looked_is_suspended(
    tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch, entries: int
) -> None:
    monkeypatch.setattr(log_module, "MOST_ENTRIES", entries)
    files = {name: tmp_path / "in" / name for name in ("same", "anew", "later")}
    files["same"].parent.mkdir()

    def restarted(seq: int) -> World:
        world.shelf = FilesBackend(tmp_path / "in", "json", "*")  # type: ignore[assignment]
        world.restart(seq)
        return world

    world = World(tmp_path, clock)
    for name in ("same", "anew"):
        files[name].write_text('{"n": 1}\n' * 20)
    assert restarted(0).admit() == {"same": (0, 180), "anew": (0, 180)}
    for _ in range(2):
        with files["later"].open("a") as stream:
            stream.write('{"n": 3}\n')
        assert list(world.admit()) == ["later"]
    seq = world.gate.seq
    with files["anew"].open("r+") as stream:  # the inode stays, as it may when it is given again
        stream.write('{"n": 2}\n' * 30)
    with files["same"].open("a") as stream:
        stream.write('{"n": 1}\n')
    for _ in range(2):
        assert restarted(seq).admit().get("anew") is None
        assert world.status["suspended"][0]["reason"] == "it was rewritten from its start"
    assert world.gate.seq == seq + 1, "the other one went on"
    world.program.resume("anew")
    assert world.admit() == {"anew": (0, 270)}


def test_stream_that_leaves_is_read_to_where_it_was(tmp_path: Path, clock: Clock) -> None:
    world = World(tmp_path, clock)
    world.shelf.rows = {"a": 250, "b": 1}
    assert world.admit()["a"] == (0, 100)
    world.program.remove("a")
    assert world.admit()["a"] == (100, 200)
    world.shelf.rows["a"] = 1_000
    assert world.admit()["a"] == (200, 250)
    assert world.admit() == {}
    assert world.status["streams"]["gone"] == 1
    world.program.add("a")
    assert world.admit()["a"] == (250, 350)


def test_declared_streams_follow_their_file_and_a_wrong_edit_changes_nothing(
    tmp_path: Path, clock: Clock
) -> None:
    world = World(tmp_path, clock)
    world.declared.write_text('[streams.x]\ngreatest_rate = 5\n[streams."y 2"]\n')
    assert world.status["streams"]["live"] == 2
    world.declared.write_text("[streams.x]\ngreatest_rate = 'fast'\n")
    status = world.status
    assert status["streams"]["live"] == 2
    assert "stream 'x': greatest_rate is 'fast'; give a number" in status["notes"][0]
    world.declared.write_text("[streams.x]\n")
    status = world.status
    assert status["streams"]["live"] == 1
    assert status["notes"] == []


def test_stream_is_read_for_its_lifetime(tmp_path: Path, clock: Clock) -> None:
    world = World(tmp_path, clock)
    world.shelf.rows, world.shelf.metas = {"brief": 5}, {"brief": {"lifetime": 2}}
    assert world.admit() == {"brief": (0, 5)}
    world.shelf.rows["brief"] = 8
    clock.now_s += 3.0
    assert world.admit() == {"brief": (5, 8)}
    world.shelf.rows["brief"] = 20
    assert world.admit() == {}


def test_suspended_stream_waits_while_the_rest_flows(tmp_path: Path, clock: Clock) -> None:
    world = World(tmp_path, clock)
    world.shelf.rows = {"good": 5, "bad": 5}
    world.admit()
    world.shelf.rows = {"good": 9, "bad": 9}
    world.shelf.fault = {"bad": "it shrank"}
    assert world.admit() == {"good": (5, 9)}
    status = world.status
    assert status["suspended"][0]["reason"] == "it shrank"
    assert status["streams"]["suspended"] == 1
    world.shelf.fault = {}
    assert world.admit() == {"bad": (5, 9)}
    assert world.status["streams"]["suspended"] == 0


def test_program_may_have_a_suspended_stream_read_from_its_new_beginning(
    tmp_path: Path, clock: Clock
) -> None:
    world = World(tmp_path, clock)
    world.shelf.rows = {"cut": 50}
    world.admit()
    world.shelf.rows, world.shelf.fault = {"cut": 7}, {"cut": "it shrank"}
    assert world.admit() == {}
    assert world.status["streams"]["suspended"] == 1
    world.program.resume("cut")
    world.admit()
    world.shelf.fault = {}
    assert world.admit() == {"cut": (0, 7)}
    world.restart(2)
    assert world.admit() == {}  # the order held for one place only


@pytest.mark.parametrize("call", ["discover", "first", "latest", "advance"])
def test_nothing_is_forgotten_whichever_call_finds_the_backend_away(
    tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    world = World(tmp_path, clock, lane_rows=4)
    world.shelf.rows = {"a": 5}

    def away(*_: object, **__: object) -> None:
        raise Unavailable("the shelf is away.")

    with monkeypatch.context() as patched:
        patched.setattr(world.shelf, call, away)
        world.program.add("b")
        assert world.admit() == {}
    clock.now_s += 60.0
    world.shelf.rows["b"] = 3
    admitted = world.admit()
    assert {name: start for name, (start, _) in admitted.items()} == {"a": 0, "b": 0}


def test_stream_that_joins_as_the_backend_goes_away_is_waited_for(
    tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World(tmp_path, clock)
    world.shelf.rows = {"a": 5}
    world.admit()
    clock.now_s += 10.0
    world.shelf.rows = {"a": 9}
    assert world.admit() == {"a": (5, 9)}  # its rate is known now, and that of no other stream

    def away(*_: object, **__: object) -> None:
        raise Unavailable("the shelf is away.")

    with monkeypatch.context() as patched:
        patched.setattr(world.shelf, "latest", away)
        world.program.add("b")
        assert world.admit() == {}
    clock.now_s += 60.0
    world.shelf.rows = {"a": 9, "b": 3}
    assert world.admit() == {"b": (0, 3)}


def test_backend_that_is_away_is_waited_for(tmp_path: Path, clock: Clock) -> None:
    world = World(tmp_path, clock)
    world.shelf.rows, world.shelf.away = {"a": 5}, True
    assert world.admit() == {}
    world.shelf.away = False
    assert world.admit() == {}  # within the pause
    clock.now_s += 1.0
    assert world.admit() == {"a": (0, 5)}


def test_what_is_asked_while_the_backend_is_away_holds_afterwards(
    tmp_path: Path, clock: Clock
) -> None:
    world = World(tmp_path, clock)
    world.shelf.rows = {"a": 5, "b": 5}
    world.admit()
    world.shelf.away = True
    world.program.remove("a")
    world.admit()
    world.shelf.away = False
    clock.now_s += 1.0
    world.shelf.rows = {"a": 9, "b": 9}
    world.admit()
    world.shelf.rows = {"a": 99, "b": 99}
    assert world.admit() == {"b": (9, 99)}


def test_run_over_what_is_there_ends(tmp_path: Path, clock: Clock) -> None:
    world = World(tmp_path, clock)
    world.shelf.rows = {"a": 150, "b": 3}
    world.gate.once = True
    assert world.admit() == {"a": (0, 100), "b": (0, 3)}
    world.shelf.rows = {"a": 999, "b": 999, "new": 999}
    assert world.admit() == {"a": (100, 150)}
    assert world.admit() == {}
    assert world.status["finished"]


def test_everything_overrides_the_bounds(tmp_path: Path, clock: Clock) -> None:
    world = World(tmp_path, clock, max_rows=10)
    world.shelf.rows = {"a": 5_000}
    assert world.admit(everything=True) == {"a": (0, 5_000)}


def test_a_clock_that_is_set_back_stalls_nothing(tmp_path: Path, clock: Clock) -> None:
    world = World(tmp_path, clock)
    world.shelf.rows = {"a": 10}
    assert world.admit() == {"a": (0, 10)}
    before = world.status
    clock.set_by_s = -3600.0
    world.shelf.rows = {"a": 20, "b": 5}
    assert world.admit() == {"a": (10, 20), "b": (0, 5)}, "found and admitted at once"
    clock.now_s += 2.0
    world.shelf.rows = {"a": 30, "b": 5}
    clock.now_s += 0.3
    made = world.gate.admit(None, False)
    assert made is not None
    assert all(first <= last <= clock.time() + 1e-3 for _, first, last in made.arrived)
    after = world.status
    assert after["at_s"] < before["at_s"], "told by the machine's clock"
    assert len(after["decisions"]) > len(before["decisions"]), "lanes are decided every period"
    world.shelf.away = True
    assert world.admit() == {}
    clock.set_by_s = -7200.0
    world.shelf.away, world.shelf.rows = False, {"a": 40}
    clock.now_s += 1.0
    assert world.admit() == {"a": (30, 40)}, "tried again after the pause"


@pytest.mark.parametrize("refused", ["write_status", "write_streams", "committed"])
def test_a_file_that_only_tells_or_tidies_does_not_end_the_query(
    tmp_path: Path, clock: Clock, refused: str, monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:  # fmt: skip
    def refuse(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    world = World(tmp_path, clock)
    assert world.log is not None
    place: Any = world.log if refused == "committed" else gate_module
    monkeypatch.setattr(place, refused, refuse)
    for rows in (10, 20, 30):
        world.shelf.rows = {"a": rows}
        assert world.admit() == {"a": (rows - 10, rows)}
        clock.now_s += 5.0
        world.gate.committed(world.gate.seq)
    said = [line for line in caplog.messages if "No space left on device" in line]
    assert len(said) == 1, "once, not every period"


def test_streams_that_left_long_ago_are_forgotten(
    tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A hundred days of one new stream a day: those of the last thirty are kept."""
    monkeypatch.setattr(log_module, "MOST_ENTRIES", 4)
    world = World(tmp_path, clock)
    world.shelf.rows = {"always": 0}
    read = {"always": 0}
    seq = 0
    for day in range(100):
        clock.now_s += 86_400.0
        world.shelf.rows.pop(f"day-{day - 1}", None)
        world.shelf.rows |= {"always": day, f"day-{day}": 7}
        for _ in range(3):
            for stream, (start, end) in world.admit().items():
                assert start == read.get(stream, 0)
                read[stream] = end
        seq = world.gate.seq
        world.gate.committed(seq - 1)
        if day % 40 == 39:
            world.restart(seq)
    assert read == {"always": 99} | {f"day-{day}": 7 for day in range(100)}
    assert 30 <= len(world.gate.names) <= 35
    assert sum(file.stat().st_size for file in tmp_path.rglob("*.segment")) < 50_000
    assert world.status["admitted_rows"] == 20 * 7 + 20  # since the last restart


def test_one_that_comes_back_in_time_is_read_on(
    tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_module, "MOST_ENTRIES", 3)
    world = World(tmp_path, clock)
    world.shelf.rows = {"left": 5, "stays": 1}
    assert world.admit() == {"left": (0, 5), "stays": (0, 1)}
    del world.shelf.rows["left"]
    for more in range(2, 20):
        clock.now_s += 86_400.0
        world.shelf.rows["stays"] = more
        world.admit()
        world.gate.committed(world.gate.seq - 1)
    world.shelf.rows["left"] = 8
    assert world.admit() == {"left": (5, 8)}
