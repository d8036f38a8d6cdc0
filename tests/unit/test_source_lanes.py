"""Lanes of a running source: what is believed of its streams, and which lane reads them."""

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from contract.gate_world import Clock, World
from penstock.spark.sources import gate as gate_module

STREAMS, RATE_PER_S, CAPACITY_PER_S = 40, 1_000, 10_000


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(gate_module, "time", made)
    return made


class Load:
    """Streams of a steady rate before lanes that take a second's rows in each batch of a second."""

    def __init__(self, folder: Path, clock: Clock, waiting: int, **limits: Any) -> None:
        chosen = {
            "lane_capacity_per_s": float(CAPACITY_PER_S), "lane_rows": CAPACITY_PER_S,
            "period_s": 5.0, "latency_bound_s": 5.0, **limits,
        }  # fmt: skip
        self.world, self.clock = World(folder, clock, **chosen), clock
        self.world.shelf.rows = {f"s{n}": waiting for n in range(STREAMS)}

    def second(self) -> dict[str, Any]:
        """A batch; the status after it."""
        self.clock.now_s += 1.0
        for name in self.world.shelf.rows:
            self.world.shelf.rows[name] += RATE_PER_S
        self.world.gate.admit(None, False)
        return self.world.told


@pytest.mark.parametrize("strategy", ["drf-m", "drf", "ard"])
def test_a_backlog_is_no_rate_and_is_worked_off(
    tmp_path: Path, clock: Clock, strategy: str
) -> None:
    load = Load(tmp_path, clock, 20_000, strategy=strategy)
    told = [load.second() for _ in range(40)]
    believed = [made["rate_per_s"] for made in told[-1]["decisions"] if made["at_s"] > 1_005.5]
    assert believed == pytest.approx([STREAMS * RATE_PER_S] * len(believed), rel=0.02)
    queues = [one["waiting_rows"] for one in told]
    assert all(later <= before for before, later in pairwise(queues))
    assert queues[10:] == [0] * 30, "all of it within twice the bound"
    assert {len(one["lanes"]) for one in told[20:]} <= {5, 6, 7}


@pytest.mark.parametrize("restarted", [False, True])
def test_streams_without_a_backlog_get_the_lanes_they_need(
    tmp_path: Path, clock: Clock, restarted: bool
) -> None:
    load = Load(tmp_path, clock, 0)
    for _ in range(20):
        load.second()
    if restarted:
        load.world.restart(load.world.gate.seq)
    told = [load.second() for _ in range(30)]
    assert {len(one["lanes"]) for one in told} <= {5, 6, 7}
    assert {one["waiting_rows"] for one in told} == {0}


def test_a_gate_that_never_lives_for_half_a_period_gets_its_streams_lanes_all_the_same(
    tmp_path: Path, clock: Clock
) -> None:
    """Where it is killed again and again, no rate is ever known; what waits is."""
    load = Load(tmp_path, clock, 0)
    told = [load.second()]
    for _ in range(20):
        load.world.restart(load.world.gate.seq)
        told += [load.second() for _ in range(2)]
    assert max(len(one["lanes"]) for one in told) >= 4
    waiting = [one["waiting_rows"] for one in told[-20:]]
    assert max(waiting) < 5 * STREAMS * RATE_PER_S, "none waits for longer than the bound"
    assert waiting[-1] <= waiting[0]


def test_a_restart_alone_redirects_no_stream(tmp_path: Path, clock: Clock) -> None:
    load = Load(tmp_path, clock, 0)
    for _ in range(20):
        before = load.second()
    load.world.restart(load.world.gate.seq)
    after = load.second()
    assert len(after["lanes"]) == len(before["lanes"])
    assert (after["redirected"], after["decisions"]) == (0, [])


def test_what_came_while_a_stream_was_away_is_no_rate(tmp_path: Path, clock: Clock) -> None:
    load = Load(tmp_path, clock, 0)
    for _ in range(20):
        load.second()
    load.world.shelf.fault = {"s0": "it vanished"}
    for _ in range(60):
        load.second()
    load.world.shelf.fault = {}
    for _ in range(20):
        load.second()
    rates = {one["stream"]: one["rate_per_s"] for one in load.world.program.describe()}
    assert rates["s0"] == pytest.approx(RATE_PER_S, rel=0.01)
    believed = [made["rate_per_s"] for made in load.world.told["decisions"][-4:]]
    assert believed == pytest.approx([STREAMS * RATE_PER_S] * 4, rel=0.02)


def test_streams_that_join_are_placed_by_what_is_known_of_them_and_stay_new(
    tmp_path: Path, clock: Clock
) -> None:
    load = Load(tmp_path, clock, 0, drain_below=None)
    for _ in range(10):
        load.second()
    before = load.world.told
    load.world.shelf.metas = {"heavy": {"expected_rate": 8_000}, "light": {"expected_rate": 10}}
    load.world.shelf.rows |= {"heavy": 0, "light": 0}
    joined = load.second()
    assert sum(lane["rate_per_s"] for lane in joined["lanes"]) == pytest.approx(40_000, rel=0.01)
    assert len(joined["lanes"]) == len(before["lanes"]) + 1, "no lane had room for as much"
    load.world.shelf.rows |= {f"late{n}": 0 for n in range(3)}
    again = load.second()
    crowded = max(again["lanes"], key=lambda lane: lane["streams"])
    assert crowded["streams"] <= 9, "an average stream fits only where there is room"
    number = again["decisions"][-1]["number"]
    while (decided := load.second())["decisions"][-1]["number"] == number:
        pass
    newest = decided["decisions"][-1]
    assert "new streams admitted: 5" in newest["reasons"]
    assert (newest["redirected"], decided["redirected"]) == (0, before["redirected"])
    assert load.second()["decisions"][-1]["number"] == newest["number"]
    for _ in range(5):
        later = load.second()
    assert not any("new streams" in said for said in later["decisions"][-1]["reasons"])


def test_streams_that_join_do_not_crowd_the_lane_that_carries_most(
    tmp_path: Path, clock: Clock
) -> None:
    load = Load(tmp_path, clock, 0, lanes_max=5, drain_below=None)
    for _ in range(12):
        load.second()
    for number in range(4):
        load.world.shelf.rows[f"late{number}"] = 0
        told = load.second()
    assert sorted(lane["streams"] for lane in told["lanes"]) == [8, 9, 9, 9, 9]


def test_a_queue_is_sampled_before_a_batch_takes_it(tmp_path: Path, clock: Clock) -> None:
    load = Load(tmp_path, clock, 0, lane_rows=10_000_000, drain_below=None)
    for _ in range(12):
        load.second()
    lanes = len(load.world.told["lanes"])
    for _ in range(4):  # batches 40 s apart: what a lane gets would take it 34 s
        clock.now_s += 39.0
        for name in load.world.shelf.rows:
            load.world.shelf.rows[name] += 39 * RATE_PER_S
        told = load.second()
    said = [reason for made in told["decisions"] for reason in made["reasons"]]
    assert sum(lane["in_flight_rows"] for lane in told["lanes"]) == 40 * STREAMS * RATE_PER_S
    assert any("its queue says" in reason for reason in said), said
    assert len(told["lanes"]) > lanes
    assert "lanes_max" in told["decisions"][-1]["infeasible"]


def test_no_lane_is_late_while_capacity_is_left(tmp_path: Path, clock: Clock) -> None:
    """Streams that start with a backlog, join in dozens, burst together and leave."""
    per_lane, bound_s = 10_000, 5.0
    world = World(
        tmp_path, clock, lane_capacity_per_s=float(per_lane), lane_rows=per_lane, period_s=5.0,
        latency_bound_s=bound_s, lanes_max=64,
    )  # fmt: skip
    rows = world.shelf.rows = {f"s{n}": 500 for n in range(1_000)}
    for second in range(80):
        clock.now_s += 1.0
        for name in rows:
            rows[name] += 300 if 40 <= second < 55 else 100
        if 15 <= second < 30:
            rows |= {f"late{second}-{n}": 200 for n in range(30)}
        if 60 <= second < 65:
            for name in list(rows)[:100]:
                del rows[name]
        world.gate.admit(None, False)
        told = world.told
        assert max(lane["queue_rows"] for lane in told["lanes"]) <= bound_s * per_lane, second
    assert told["waiting_rows"] == 0
    assert len(told["lanes"]) < 25, "95,000 rows a second in lanes of 10,000"
