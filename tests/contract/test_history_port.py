"""What every History promises, on a fake, SQLite and PostgreSQL."""

import math
import threading
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import create_engine, text

from contract import postgres
from contract.fakes import FakeHistory, observation, rich_observation
from contract.same import same
from penstock.control.actions import MigrationCost, Move, MoveKeyGroups, Outcome, SetExecutors
from penstock.control.history.store import HistoryStore
from penstock.control.history.tail import Position, counts, news, position
from penstock.control.records import (
    ActionRecord,
    AllocationRecord,
    DecisionRecord,
    FailureRecord,
    RunRecord,
)
from penstock.model.decision import Decision, RoomDecision, ScalingPlan
from penstock.model.observation import LatencyObservation
from penstock.model.plan_document import Fusion, Group, Order

RUN = RunRecord("road", "incremental", 1000.0, 5.0, 5.0, slots_per_executor=2, share=0.999)
DECISION = DecisionRecord(
    at_s=1000.0,
    policy="incremental",
    current=ScalingPlan({"a": 1, "b": 2}, 2),
    decision=Decision(ScalingPlan({"a": 4, "b": 2}, 4), ("a: 410/s > 380/s", "œ"), "too much"),
    guarded=ScalingPlan({"a": 3, "b": 2}, 3),
    guard_reasons=("bounds: 4 processors wanted, maximum 3",),
    dry_run=True,
)
ACTION = ActionRecord(1000.5, Outcome(SetExecutors(3), done=False, detail="no\nroom", took_s=0.25))
MOVES = (Move("a", 3, "nœud"), Move("b", 0, "2"))
ALLOCATION = AllocationRecord(
    1000.0, "albic", MOVES, 31.5, 4.25, 1e-3, 0.25, 0.5, ("2", "3"), 7, "later", ("œ", "b"), "no"
)
MOVED = ActionRecord(
    1001.0,
    Outcome(MoveKeyGroups(MOVES), True, "moved", 1.5, MigrationCost(2, 5e7, 0.75, 0.5)),
)
LEFT = ActionRecord(1002.0, Outcome(SetExecutors(2, ("3",)), True, "drained"))
FAILURE = FailureRecord(1001.0, "policy", "ZeroDivisionError: division by zero")


@dataclass
class Opened:
    """A history to write to, and its readers."""

    port: Any
    observations: Any
    decisions: Any
    allocations: Any
    actions: Any
    failures: Any
    room_decisions: Any


@pytest.fixture(scope="module")
def postgres_url() -> Iterator[str]:
    reason = postgres.missing()
    if reason:
        pytest.skip(reason)
    with postgres.server() as url:
        yield url


@pytest.fixture
def fresh_postgres_url(postgres_url: str) -> Iterator[str]:
    """A database that holds nothing yet, on the same server."""
    engine = create_engine(postgres_url, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.execute(text("CREATE DATABASE fresh"))
    yield postgres_url.removesuffix("/postgres") + "/fresh"
    with engine.connect() as connection:
        connection.execute(text("DROP DATABASE fresh WITH (FORCE)"))
    engine.dispose()


@pytest.fixture(params=["fake", "sqlite", "postgresql"])
def history(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Opened]:
    if request.param == "fake":
        fake = FakeHistory()
        yield Opened(
            fake, lambda: fake.observations, lambda: fake.decisions, lambda: fake.allocations,
            lambda: fake.actions, lambda: fake.failures, lambda: fake.elsewhere,
        )  # fmt: skip
        return
    if request.param == "sqlite":
        where = str(tmp_path / "history.sqlite")
    else:
        where = request.getfixturevalue("postgres_url")
    with HistoryStore(where) as store, HistoryStore(where, create=False) as reader:
        port = store.begin(RUN)
        run = port.run_id
        yield Opened(
            port,
            lambda: reader.read_observations(run),
            lambda: reader.read_decisions(run),
            lambda: reader.read_allocations(run),
            lambda: reader.read_actions(run),
            lambda: reader.read_failures(run),
            lambda: reader.read_room_decisions(run),
        )


def test_an_observation_comes_back_exactly(history: Opened) -> None:
    written = [rich_observation(1000.0), observation(1005.0), rich_observation(1010.0)]
    for one in written:
        history.port.observed(one)
        history.port.flush()
    read = history.observations()
    assert len(read) == 3
    assert all(same(a, b) for a, b in zip(written, read, strict=True))


def test_decisions_actions_and_failures_come_back_exactly(history: Opened) -> None:
    history.port.decided(DECISION)
    history.port.allocated(ALLOCATION)
    for one in (ACTION, MOVED, LEFT):
        history.port.acted(one)
    history.port.failed(FAILURE)
    history.port.flush()
    assert history.decisions() == [DECISION]
    assert history.allocations() == [ALLOCATION]
    assert history.actions() == [ACTION, MOVED, LEFT]
    assert history.failures() == [FAILURE]


def test_readers_see_whole_periods_only(history: Opened) -> None:
    history.port.observed(observation(1000.0))
    history.port.decided(DECISION)
    assert history.observations() == []
    assert history.decisions() == []
    history.port.flush()
    assert len(history.observations()) == len(history.decisions()) == 1


def test_flushing_nothing_is_fine_and_writes_nothing_twice(history: Opened) -> None:
    history.port.flush()
    history.port.observed(observation())
    history.port.flush()
    history.port.flush()
    assert len(history.observations()) == 1


def test_records_keep_their_order(history: Opened) -> None:
    for at_s in (1003.0, 1001.0, 1002.0):
        history.port.failed(FailureRecord(at_s, "policy", "x"))
    history.port.flush()
    assert [failure.at_s for failure in history.failures()] == [1003.0, 1001.0, 1002.0]


def test_one_may_read_while_another_writes(history: Opened) -> None:
    seen: list[int] = []
    done = threading.Event()
    trouble: list[BaseException] = []

    def read() -> None:
        try:
            while not done.is_set():
                seen.append(len(history.observations()))
        except BaseException as error:  # noqa: BLE001 - told to the test below
            trouble.append(error)

    reader = threading.Thread(target=read)
    reader.start()
    for k in range(50):
        history.port.observed(rich_observation(1000.0 + k))
        history.port.flush()
    done.set()
    reader.join(timeout=120)
    assert not trouble
    assert seen == sorted(seen)
    assert len(history.observations()) == 50


def test_plans_come_back_as_data(history: Opened) -> None:
    fusion = Fusion((Group(("a + b", "c"), ("p, q", "(œ)")), Group(("d",), ())))
    written = [
        RoomDecision.of_plan(1.0, "fusion", "plan proposal", fusion, {"expected_gain": 0.5}),
        RoomDecision.of_plan(2.0, "fusion", "plan applied", Fusion(()), {}, ("why",), "no room"),
        RoomDecision.of_plan(3.0, "order", "plan proposal", Order(("b > c", "a")), {}),
        RoomDecision(4.0, "routing", "osg", "routes by table 7", {"tasks": 9.0}),
    ]
    for one in written:
        history.port.room_decided(one)
    history.port.flush()
    assert history.room_decisions() == written


def make_older(where: str, form: int, *columns: str) -> None:
    """The history in an earlier form, which has not got these columns yet."""
    engine = create_engine(where)
    with engine.begin() as connection:
        for table, column in (one.split(".") for one in columns):
            connection.execute(text(f"ALTER TABLE penstock_{table} DROP COLUMN {column}"))
        connection.execute(text(f"UPDATE penstock_history SET version = {form}"))
    engine.dispose()


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_a_history_without_plans_gets_them_when_it_is_written(
    kind: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    path = tmp_path / "h.sqlite"
    where = f"sqlite:///{path}"
    if kind == "postgresql":
        where = request.getfixturevalue("postgres_url")
    old = RoomDecision(1.0, "fusion", "plan proposal", "fuse a + b by (k)", {})
    new = RoomDecision.of_plan(2.0, "order", "plan proposal", Order(("b", "a")), {})
    with HistoryStore(where) as store:
        run = store.begin(RUN)
        run.room_decided(old)
        run.end(2.0)
    make_older(where, 4, "room_decisions.plan")
    with HistoryStore(where, create=False) as reader:
        assert reader.read_room_decisions(run.run_id) == [old]
        with HistoryStore(where) as store:
            later = store.begin(RUN)
            later.room_decided(new)
            later.flush()
            assert store.read_room_decisions(run.run_id) == [old]
        assert reader.read_room_decisions(later.run_id) == [new]


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_a_history_without_shares_gets_them_when_it_is_written(
    kind: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    where = f"sqlite:///{tmp_path / 'h.sqlite'}"
    if kind == "postgresql":
        where = request.getfixturevalue("fresh_postgres_url")
    latency = LatencyObservation(10, 0.7, 1.5, 3.0, 0.95, share_s=2.5)
    seen = observation(latency=latency)
    before = replace(seen, latency=replace(latency, share_s=math.nan))
    with HistoryStore(where) as store:
        run = store.begin(RUN)
        run.observed(seen)
        run.end(2.0)
    make_older(where, 8, "runs.share", "observations.latency_share_s")
    with HistoryStore(where, create=False) as reader:
        assert [one.share for one in reader.runs().values()] == [None]
        assert same(reader.read_observations(run.run_id)[0], before)
        with HistoryStore(where) as store:
            later = store.begin(RUN)
            later.observed(seen)
            later.flush()
        assert [one.share for one in reader.runs().values()] == [None, RUN.share]
        assert same(reader.read_observations(run.run_id)[0], before)
        assert reader.read_observations(later.run_id) == [seen]


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_several_may_make_the_same_history_at_once(
    request: pytest.FixtureRequest, tmp_path: Path, kind: str
) -> None:
    if kind == "sqlite":
        where = str(tmp_path / "new.sqlite")
    else:
        where = request.getfixturevalue("fresh_postgres_url")
    begin = threading.Barrier(8)
    numbers: list[int] = []
    trouble: list[BaseException] = []

    def make() -> None:
        try:
            begin.wait(timeout=120)
            with HistoryStore(where) as store:
                numbers.append(store.begin(RUN).run_id)
        except BaseException as error:  # noqa: BLE001 - told to the test below
            trouble.append(error)

    makers = [threading.Thread(target=make) for _ in range(8)]
    for maker in makers:
        maker.start()
    for maker in makers:
        maker.join(timeout=120)
    assert not trouble
    assert len(set(numbers)) == 8


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_a_reader_follows_a_run_by_position(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    where = (
        str(tmp_path / "h.sqlite") if kind == "sqlite" else request.getfixturevalue("postgres_url")
    )
    with HistoryStore(where) as store:
        other, run = store.begin(RUN), store.begin(RUN)
        start = position(store, run.run_id)
        assert start == Position()
        for number in range(3):
            for written in (other, run):
                written.observed(observation(1000.0 + number))
                written.decided(DECISION)
                written.decided(replace(DECISION, policy="ds2", shadow=True))
                written.acted(ACTION)
                written.flush()
        middle = position(store, run.run_id)
        run.observed(observation(990.0))  # the clock was set back
        run.allocated(ALLOCATION)
        run.failed(FAILURE)
        run.flush()
        end = position(store, run.run_id)
        first, second = news(store, run.run_id, start, middle), news(store, run.run_id, middle, end)
        assert [o.at_s for o in first.observations] == [1000.0, 1001.0, 1002.0]
        assert first.decisions == (DECISION,) * 3
        assert [d.policy for d in first.shadows] == ["ds2"] * 3
        assert (first.allocations, first.failures) == ((), ())
        assert [o.at_s for o in second.observations] == [990.0]
        assert (second.allocations, second.failures) == ((ALLOCATION,), (FAILURE,))
        assert second.decisions == second.shadows == second.actions == ()
        chosen = store.read_periods(run.run_id, [1, 3])
        assert [o.at_s for o in chosen] == [1000.0, 1002.0]
        counted = counts(store, run.run_id)
        assert counted.decisions == {("incremental", False): 3, ("ds2", True): 3}
        assert counted.actions == {("executors", False): 3}
        assert counted.failures == {"policy": 1}
