"""The history as a store: what it refuses, what it keeps private, what it survives."""

import math
import os
import sqlite3
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy.exc import OperationalError

from contract.fakes import observation, rich_observation
from contract.same import same
from penstock.control.actions import Outcome, SetExecutors
from penstock.control.history import store as history_module
from penstock.control.history.store import HistoryStore, RunHistory, Within
from penstock.control.history.tables import SCHEMA_VERSION
from penstock.control.records import ActionRecord, FailureRecord, RunRecord
from penstock.errors import InvalidInput, PenstockError, Unavailable
from penstock.model.decision import RoomDecision
from penstock.model.observation import (
    ComponentObservation,
    KeyGroups,
    LatencyObservation,
    NodeObservation,
    Observation,
    SinkObservation,
)
from penstock.model.plan_document import Order

RUN = RunRecord("road", "static", 1000.0, 5.0, 5.0)


def test_runs_are_listed_with_their_end(tmp_path: Path) -> None:
    with HistoryStore(str(tmp_path / "h.sqlite")) as store:
        first, second = store.begin(RUN), store.begin(RUN)
        second.end(2000.0)
        runs = store.runs()
        assert list(runs) == [first.run_id, second.run_id]
        assert runs[first.run_id] == RUN
        assert runs[second.run_id].ended_at_s == 2000.0
        assert store.latest_run() == second.run_id


def test_runs_do_not_mix_and_times_select(tmp_path: Path) -> None:
    with HistoryStore(str(tmp_path / "h.sqlite")) as store:
        first, second = store.begin(RUN), store.begin(RUN)
        for k in range(6):
            (first if k % 2 else second).observed(rich_observation(1000.0 + k))
        first.flush()
        second.flush()
        assert [o.at_s for o in store.read_observations(first.run_id)] == [1001.0, 1003.0, 1005.0]
        some = store.read_observations(second.run_id, Within(1001.0, 1004.0))
        assert [o.at_s for o in some] == [1002.0, 1004.0]
        assert all(len(o.components) == 2 for o in some)
        assert store.read_observations(99) == []


def test_the_file_is_for_its_owner_only(tmp_path: Path) -> None:
    path = tmp_path / "h.sqlite"
    before = os.umask(0)
    try:
        with HistoryStore(str(path)) as store:
            store.begin(RUN).end(1.0)
            modes = {f.name: stat.S_IMODE(f.stat().st_mode) for f in tmp_path.iterdir()}
    finally:
        os.umask(before)
    assert set(modes.values()) == {0o600}


def test_sqlite_lets_readers_in_while_it_writes(tmp_path: Path) -> None:
    path = tmp_path / "h.sqlite"
    with HistoryStore(str(path)), sqlite3.connect(path) as plain:
        assert plain.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    plain.close()


def test_another_form_of_the_history_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "h.sqlite"
    HistoryStore(str(path)).close()
    plain = sqlite3.connect(path)
    plain.execute("UPDATE penstock_history SET version = 99")
    plain.commit()
    plain.close()
    with pytest.raises(InvalidInput, match="form 99; this Penstock reads form "):
        HistoryStore(str(path))


FORM_4 = """
ALTER TABLE penstock_room_decisions DROP COLUMN plan;
ALTER TABLE penstock_observations DROP COLUMN rate_age_s;
ALTER TABLE penstock_observations DROP COLUMN part_of_cluster;
UPDATE penstock_history SET version = 4;
"""
OLD_PROPOSAL = RoomDecision(5.0, "fusion", "plan proposal", "fuse a + b by (k)", {"x": 0.5})


def older(path: Path) -> None:
    """A history as it was before room decisions had plans."""
    with HistoryStore(str(path)) as store:
        run = store.begin(RUN)
        run.room_decided(OLD_PROPOSAL)
        run.end(9.0)
    plain = sqlite3.connect(path)
    plain.executescript(FORM_4)
    plain.commit()
    plain.close()


def form_of(path: Path) -> tuple[int, bool]:
    plain = sqlite3.connect(path)
    (version,) = plain.execute("SELECT version FROM penstock_history").fetchone()
    columns = [row[1] for row in plain.execute("PRAGMA table_info(penstock_room_decisions)")]
    plain.close()
    return version, "plan" in columns


def test_a_history_of_an_older_form_is_read_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "h.sqlite"
    older(path)
    with HistoryStore(str(path), create=False) as store:
        assert store.read_room_decisions(1) == [OLD_PROPOSAL]
    assert form_of(path) == (4, False)


@pytest.mark.parametrize("half_done", [False, True])
def test_a_history_of_an_older_form_becomes_ours_when_it_is_written(
    tmp_path: Path, half_done: bool
) -> None:
    path = tmp_path / "h.sqlite"
    older(path)
    if half_done:  # a program that ended between the two steps
        plain = sqlite3.connect(path)
        plain.execute("ALTER TABLE penstock_room_decisions ADD COLUMN plan JSON")
        plain.commit()
        plain.close()
    decision = RoomDecision.of_plan(6.0, "order", "plan proposal", Order(("b", "a")), {"x": 1.0})
    reader = HistoryStore(str(path), create=False)
    with reader, HistoryStore(str(path)) as store:
        run = store.begin(RUN)
        run.room_decided(decision)
        run.flush()
        assert store.read_room_decisions(1) == [OLD_PROPOSAL]
        assert reader.read_room_decisions(run.run_id) == [decision]
    assert form_of(path) == (SCHEMA_VERSION, True)


FORM_8 = """
ALTER TABLE penstock_observations DROP COLUMN latency_share_s;
ALTER TABLE penstock_runs DROP COLUMN share;
UPDATE penstock_observations SET sinks = replace(sinks, ',"share_s":2.5', '');
UPDATE penstock_history SET version = 8;
"""


def test_a_history_of_before_the_share_was_measured_knows_it_of_new_runs_alone(
    tmp_path: Path,
) -> None:
    path, where = tmp_path / "h.sqlite", str(tmp_path / "h.sqlite")
    latency = LatencyObservation(10, 0.7, 1.5, 3.0, 0.95, 2.5)
    seen = observation(latency=latency, sinks=(SinkObservation("out", 3.0, latency),))
    with HistoryStore(where) as store:
        run = store.begin(replace(RUN, share=0.999))
        run.observed(seen)
        run.end(9.0)
        assert (store.runs()[1].share, store.read_observations(1)) == (0.999, [seen])
    plain = sqlite3.connect(path)
    plain.executescript(FORM_8)
    plain.commit()
    plain.close()
    before = replace(latency, share_s=math.nan)
    old = replace(seen, latency=before, sinks=(SinkObservation("out", 3.0, before),))
    with HistoryStore(where, create=False) as store:  # as it is
        assert store.runs() == {1: replace(RUN, ended_at_s=9.0)}
        assert same(store.read_observations(1)[0], old)
        assert same(store.read_periods(1, [1])[0], old)
    with HistoryStore(where) as store:  # and once it is ours
        run = store.begin(replace(RUN, share=0.9))
        run.observed(seen)
        run.flush()
        assert [one.share for one in store.runs().values()] == [None, 0.9]
        assert same(store.read_observations(1)[0], old)
        assert store.read_observations(2) == [seen]
    assert form_of(path) == (SCHEMA_VERSION, True)


def _garbage(folder: Path) -> str:
    path = folder / "x"
    path.write_bytes(bytes(range(256)) * 20)
    return str(path)


def _other_database(folder: Path) -> str:
    path = folder / "other.sqlite"
    plain = sqlite3.connect(path)
    plain.execute("CREATE TABLE mine (x)")
    plain.commit()
    plain.close()
    return str(path)


@pytest.mark.parametrize(
    ("make", "kind"),
    [
        (lambda folder: str(folder / "absent.sqlite"), InvalidInput),
        (lambda folder: str(folder), InvalidInput),
        (_garbage, Unavailable),
        (_other_database, InvalidInput),
        (lambda folder: "nonsense://host/db", InvalidInput),
        (lambda folder: "postgresql+psycopg://u@127.0.0.1:1/x", Unavailable),
    ],
    ids=["absent", "directory", "garbage", "other", "dialect", "no server"],
)
def test_what_is_no_history_is_refused_in_one_sentence(
    tmp_path: Path, make: object, kind: type[PenstockError]
) -> None:
    with pytest.raises(kind) as refusal:
        HistoryStore(make(tmp_path), create=False)  # type: ignore[operator]
    assert "\n" not in str(refusal.value)
    assert str(refusal.value).endswith(".")


def test_a_password_is_never_shown() -> None:
    with pytest.raises(Unavailable) as refusal:
        HistoryStore("postgresql+psycopg://u:hunter2@127.0.0.1:1/x", create=False)
    assert "hunter2" not in str(refusal.value)


@contextmanager
def unreachable(run: RunHistory) -> Iterator[None]:
    """The run's database is away meanwhile."""

    def refuse() -> None:
        raise OperationalError("insert", {}, Exception("away"))

    with pytest.MonkeyPatch.context() as away:
        away.setattr(run._engine, "begin", refuse)
        yield


def test_what_could_not_be_written_is_written_later(tmp_path: Path) -> None:
    with HistoryStore(str(tmp_path / "h.sqlite")) as store:
        run = store.begin(RUN)
        with unreachable(run):
            run.observed(observation(1000.0))
            with pytest.raises(OperationalError):
                run.flush()
            run.observed(observation(1005.0))
            with pytest.raises(OperationalError):
                run.flush()
        run.flush()
        assert [o.at_s for o in store.read_observations(run.run_id)] == [1000.0, 1005.0]


def test_what_waits_is_bounded_by_dropping_the_oldest_periods(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(history_module, "MOST_WAITING_ROWS", 17)
    with HistoryStore(str(tmp_path / "h.sqlite")) as store:
        run = store.begin(RUN)
        with unreachable(run):
            for k in range(4):  # 8 rows each
                run.observed(rich_observation(1000.0 + k))
                with pytest.raises(OperationalError):
                    run.flush()
        run.flush()
        kept = store.read_observations(run.run_id)
        assert [o.at_s for o in kept] == [1002.0, 1003.0]
        assert same(kept[0], rich_observation(1002.0))


def test_failures_that_wait_go_one_by_one_and_not_all_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(history_module, "MOST_WAITING_ROWS", 10)
    with HistoryStore(str(tmp_path / "h.sqlite")) as store:
        run = store.begin(RUN)
        with unreachable(run):
            for k in range(12):
                run.failed(FailureRecord(1000.0 + k, "observe", "away"))
            with pytest.raises(OperationalError):
                run.flush()
        run.flush()
        assert [one.at_s for one in store.read_failures(run.run_id)] == [
            1002.0 + k for k in range(10)
        ]


def test_many_key_groups_count_as_many_rows_while_they_wait(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(history_module, "MOST_WAITING_ROWS", 300)
    many = np.zeros(1_000)
    groups = KeyGroups(many, many, np.full(1_000, "1"))
    heavy = ComponentObservation("c", ("a",), 1.0, 1.0, 1, 1.0, key_groups=groups)
    with HistoryStore(str(tmp_path / "h.sqlite")) as store:
        run = store.begin(RUN)
        with unreachable(run):
            for k in range(5):
                run.observed(observation(1000.0 + k, components=(heavy,)))
                with pytest.raises(OperationalError):
                    run.flush()
        run.flush()
        kept = store.read_observations(run.run_id)
    assert [o.at_s for o in kept] == [1003.0, 1004.0]


def test_a_record_the_database_refuses_does_not_stop_later_ones(tmp_path: Path) -> None:
    with HistoryStore(str(tmp_path / "h.sqlite")) as store:
        run = store.begin(RUN)
        run.observed(observation(nodes=(NodeObservation("n", 2**80, 1.0),)))
        with pytest.raises(Exception, match="too large"):
            run.flush()
        run.failed(FailureRecord(1.0, "policy", "a\0b"))
        run.flush()
        assert len(store.read_failures(run.run_id)) == 1


def test_numbers_of_numpy_are_kept_as_numbers(tmp_path: Path) -> None:
    with HistoryStore(str(tmp_path / "h.sqlite")) as store:
        run = store.begin(RUN)
        node = NodeObservation("n", np.int64(4), np.float32(0.5))  # type: ignore[arg-type]
        run.observed(observation(np.float64(1000.0), nodes=(node,)))
        total = np.int64(3)
        run.acted(ActionRecord(1.0, Outcome(SetExecutors(total), True, "")))  # type: ignore[arg-type]
        run.flush()
        assert store.read_observations(run.run_id)[0].nodes == (NodeObservation("n", 4, 0.5),)
        assert store.read_actions(run.run_id)[0].outcome.action == SetExecutors(3)


def test_memory_serves_a_run_that_need_not_last() -> None:
    with HistoryStore("sqlite://") as store:
        run = store.begin(RUN)
        run.observed(observation())
        run.flush()
        assert len(store.read_observations(run.run_id)) == 1


numbers = st.floats(allow_nan=True, allow_infinity=True).map(lambda x: 0.0 if x == 0 else x)
texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1)


@st.composite
def groups(draw: st.DrawFn) -> KeyGroups:
    size = draw(st.integers(0, 5))
    of_size = st.lists(numbers, min_size=size, max_size=size)
    names = draw(st.lists(texts.filter(lambda x: "\0" not in x), min_size=size, max_size=size))
    return KeyGroups(
        np.array(draw(of_size), dtype=float),
        np.array(draw(of_size), dtype=float),
        np.array(names, dtype=np.str_),
    )


observations = st.builds(
    Observation,
    at_s=st.floats(0, 2e9),
    period_s=numbers,
    arrival_rate_per_s=numbers,
    backlog_rows=numbers,
    components=st.lists(
        st.builds(
            ComponentObservation,
            name=texts,
            operators=st.lists(texts).map(tuple),
            arrival_rate_per_s=numbers,
            service_time_s=numbers,
            parallelism=st.integers(0, 2**40),
            busy_s=numbers,
            key_groups=st.none() | groups(),
        ),
        max_size=3,
    ).map(tuple),
    missing=st.lists(texts).map(tuple),
)


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(written=st.lists(observations, min_size=1, max_size=3))
def test_any_observation_comes_back_exactly(
    tmp_path_factory: pytest.TempPathFactory, written: list[Observation]
) -> None:
    with HistoryStore("sqlite://") as store:
        run = store.begin(RUN)
        for one in written:
            run.observed(one)
        run.flush()
        read = store.read_observations(run.run_id)
    assert len(read) == len(written)
    assert all(same(a, b) for a, b in zip(written, read, strict=True))
    assert all(math.isfinite(o.at_s) for o in read)


def test_looking_at_another_database_does_not_change_it(tmp_path: Path) -> None:
    path = Path(_other_database(tmp_path))
    before = path.read_bytes()
    with pytest.raises(InvalidInput, match="holds no history"):
        HistoryStore(str(path), create=False)
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == [path.name]


def test_a_database_with_other_tables_can_hold_a_history_too(tmp_path: Path) -> None:
    where = _other_database(tmp_path)
    with HistoryStore(where) as store:
        store.begin(RUN)
    plain = sqlite3.connect(where)
    names = {name for (name,) in plain.execute("SELECT name FROM sqlite_master WHERE type='table'")}
    plain.close()
    assert {name for name in names if not name.startswith("penstock_")} == {"mine"}
