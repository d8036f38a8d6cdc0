"""Meta-data as people say it: durations, hours of the day, patterns; mistakes by their line."""

from datetime import datetime
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from contract.gate_world import Clock, World
from penstock.errors import InvalidInput
from penstock.spark.sources import gate as gate_module
from penstock.spark.sources.declared import patterns_meet, read_declared
from penstock.spark.sources.stream_meta import in_periods, merged, understood


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(gate_module, "time", made)
    return made


@pytest.mark.parametrize("period_s", [1.0, 5.0, 60.0])
def test_units_do_not_change_with_the_period(period_s: float) -> None:
    known = understood("a", {"period": "24h", "burst": "8 hours", "lifetime": 90, "slope": "300/h"})
    assert known == {"period": 86_400.0, "burst": 28_800.0, "lifetime": 90.0, "slope": 300 / 3600}
    found = in_periods([known], np.zeros(1), period_s)
    assert found.cycle_periods[0] * period_s == pytest.approx(86_400)
    assert found.lifetime_periods[0] * period_s == pytest.approx(90)
    assert found.slope_per_period[0] / period_s == pytest.approx(300 / 3600)


@pytest.mark.parametrize(("joined", "phase_h"), [("08:00", 23), ("09:30", 0.5), ("03:00", 18)])
def test_hours_of_the_day_are_a_cycle_from_when_the_stream_joined(
    joined: str, phase_h: float
) -> None:
    known = understood("a", {"daily": "09:00-17:00", "greatest_rate": 5})
    at_s = datetime.fromisoformat(f"2026-03-02 {joined}").astimezone().timestamp()
    found = in_periods([known, {}], np.array([at_s, at_s]), 60.0)
    assert (found.cycle_periods[0], found.burst_periods[0]) == (24 * 60, 8 * 60)
    assert found.phase_periods[0] == phase_h * 60
    assert np.isnan(found.phase_periods[1])
    night = understood("a", {"daily": "22:00-06:00"})
    assert night["burst"] == 8 * 3600


def test_what_is_said_later_takes_the_place_of_a_whole_cycle() -> None:
    daily = understood("a", {"daily": "09:00-17:00", "greatest_rate": 5})
    cycle = understood("a", {"period": "2h", "phase": "1h"})
    assert merged(daily, cycle) == {"greatest_rate": 5.0, "period": 7200.0, "phase": 3600.0}
    assert merged(cycle, daily) == daily


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ('[streams.a]\n\n[streams."cab:7"]\nleast_rate = 1\ngreatest_rate = -3\n',
         "line 5: stream 'cab:7': greatest_rate is -3; give a number of at least 0"),
        ('[streams.a]\ndaily = "09:00-25:00"\n', "line 2: stream 'a': daily is '09:00-25:00'"),
        ('[streams.a]\nlifetime = "soon"\n', "line 2: stream 'a': lifetime is 'soon'; write a dur"),
        ('# mine\n[streams.a]\nspeed = 3\n', "line 3: stream 'a': 'speed' is unknown; allowed: ex"),
        ('[streams."a*"]\n[streams.b]\n[streams."*b"]\n', "line 3: patterns 'a*' and '*b' fit the"),
        ("[streams.a]\nleast_rate = 9\ngreatest_rate = 5\n",
         "line 1: stream 'a': least_rate contradicts the rest"),
        ('[streams.a]\nperiod = "1h"\ndaily = "09:00-17:00"\n', "line 1: stream 'a': daily al"),
        ('[streams.a]\nslope = "fast"\n', "line 2: stream 'a': slope is 'fast'; give the change"),
        ("[streams.a]\ntransition = 'slowly'\n", "line 2: stream 'a': transition is 'slowly'; all"),
        ('[streams.a]\ndaily = "24:00-25:00"\n', "one span between 00:00 and 23:59, such as"),
        ('[streams]\n"a*" = {least_rate = -3}\n', "line 2: stream 'a*': least_rate is -3; give"),
        ('[streams."a*"]\ngreatest_rate = 5\n[streams.ab]\nleast_rate = 9\n',
         "line 3: stream 'ab', with what a pattern says of it: least_rate contradicts the rest"),
        ('[streams.""]\nburst = "2h"\n', "line 1: a stream's name is ''; name it"),
        ("[streams]\na = 3\n", "line 2: streams.a is 3; give a table"),
        ("[lanes]\n", "line 1: 'lanes' is unknown; allowed: streams"),
        ("[streams.a]\nx = = 1\n", "is not TOML: Invalid value (at line 2"),
        (f"x = 1{5000 * '0'}", "holds a number that is too long to be read"),
    ],
)  # fmt: skip
def test_a_mistake_is_one_sentence_with_its_file_and_line(
    tmp_path: Path, text: str, sentence: str
) -> None:
    file = tmp_path / "streams.toml"
    file.write_text(text)
    with pytest.raises(InvalidInput) as refused:
        read_declared(file)
    said = str(refused.value)
    assert said.startswith(str(file))
    assert sentence in said
    assert "\n" not in said


@given(st.text("ab*?", max_size=8), st.text("ab*?", max_size=8), st.text("ab", max_size=6))
def test_patterns_that_fit_one_name_meet(one: str, other: str, name: str) -> None:
    if fnmatchcase(name, one) and fnmatchcase(name, other):
        assert patterns_meet(one, other)
    assert patterns_meet(one, other) == patterns_meet(other, one)


@pytest.mark.parametrize(
    ("one", "other", "meet"),
    [("cab:*", "cab:7*", True), ("cab:*", "bus:*", False), ("a?", "?b", True), ("a?", "a", False),
     ("[ab]x", "bx*", True), ("*", "anything", True)],
)  # fmt: skip
def test_patterns_that_meet(one: str, other: str, meet: bool) -> None:
    assert patterns_meet(one, other) is meet


def test_a_pattern_holds_for_streams_that_are_found_and_declares_none(
    tmp_path: Path, clock: Clock
) -> None:
    world = World(tmp_path, clock)
    world.shelf.rows = {f"cab:{n}": 0 for n in range(3)} | {"bus:1": 0}
    world.declared.write_text(
        '[streams."cab:*"]\nexpected_rate = 40\n[streams."cab:1"]\nexpected_rate = 90\n'
    )
    status = world.status
    assert status["streams"]["live"] == 4
    # The bus, of which nothing is known yet, counts as an average stream.
    assert status["decisions"][-1]["rate_per_s"] == pytest.approx((40 + 90 + 40) * 4 / 3)
    world.declared.write_text('[streams."cab:*"]\nexpected_rate = -1\n')
    clock.now_s += 1.0
    status = world.status
    assert "streams.toml, line 2: stream 'cab:*': expected_rate is -1" in status["notes"][0]
    assert status["decisions"][-1]["rate_per_s"] == pytest.approx(40 + 90 + 40, rel=0.01)


def test_what_a_backend_says_wrongly_is_noted_and_left_out(tmp_path: Path, clock: Clock) -> None:
    world = World(tmp_path, clock)
    wrong: dict[str, Any] = {"a": {"lifetime": "for ever"}, "b": {"expected_rate": 5}}
    world.shelf.rows, world.shelf.metas = {"a": 3, "b": 3}, wrong
    status = world.status
    assert "stream 'a': lifetime is 'for ever'" in status["notes"][0]
    assert status["streams"]["live"] == 2


def test_meta_data_of_two_places_that_disagree_touch_no_other_stream(
    tmp_path: Path, clock: Clock
) -> None:
    """A pattern and the backend contradict each other of one stream: lanes are decided for all."""
    world = World(tmp_path, clock)
    world.shelf.rows = {"cab:7": 5, "cab:8": 5}
    world.shelf.metas = {"cab:7": {"least_rate": 100}}
    world.declared.write_text('[streams."cab:*"]\ngreatest_rate = 50\n')
    world.admit()
    status = world.status
    assert status["decisions"], "lanes are decided on"
    (note,) = status["notes"]
    assert note == (
        "meta-data from several places: stream 'cab:7': least_rate contradicts the rest; it must "
        "not exceed greatest_rate; what was said last holds alone"
    )
    world.shelf.metas = {}
    world.shelf.rows = {**world.shelf.rows, "cab:9": 1}
    assert world.status["notes"] == []
