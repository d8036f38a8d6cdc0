"""Following a run that is being written: what came since a reader last looked."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass
from typing import Any

from sqlalchemy import ScalarSelect, Table, func, select

from penstock.control.history import tables as t
from penstock.control.history.store import HistoryStore, Within
from penstock.control.records import (
    ActionRecord,
    AllocationRecord,
    DecisionRecord,
    FailureRecord,
)
from penstock.errors import InvalidInput
from penstock.model.decision import RoomDecision
from penstock.model.observation import AdmissionRecord, Observation


@dataclass(frozen=True)
class Position:
    """How far a reader has come, as the highest number of each table of a run.

    Numbers and not times: a clock that is set back must not hide what follows.

    >>> Position.parse(str(Position(3, 7, 2, 1, 1, 0))) == Position(3, 7, 2, 1, 1, 0)
    True
    """

    observations: int = 0
    decisions: int = 0
    allocations: int = 0
    room_decisions: int = 0
    actions: int = 0
    failures: int = 0

    def __str__(self) -> str:
        return "-".join(map(str, astuple(self)))

    @classmethod
    def parse(cls, text: str) -> "Position":
        """The position of its text."""
        parts = text.split("-")
        if len(parts) != 6 or not all(p.isascii() and p.isdigit() and len(p) < 19 for p in parts):
            raise InvalidInput("a position is six whole numbers joined by '-'.")
        return cls(*map(int, parts))


@dataclass(frozen=True)
class News:
    """What was written to a run between two positions."""

    observations: tuple[Observation, ...] = ()
    decisions: tuple[DecisionRecord, ...] = ()
    shadows: tuple[DecisionRecord, ...] = ()
    allocations: tuple[AllocationRecord, ...] = ()
    admissions: tuple[AdmissionRecord, ...] = ()
    room_decisions: tuple[RoomDecision, ...] = ()
    actions: tuple[ActionRecord, ...] = ()
    failures: tuple[FailureRecord, ...] = ()


def position(store: HistoryStore, run: int) -> Position:
    """Where a reader of everything stands now.

    One statement, so that no table is looked at before a period was written and another after.
    """

    def highest(table: Table) -> ScalarSelect[Any]:
        number = table.c.seq if "seq" in table.c else table.c.id
        return select(func.max(number)).where(table.c.run_id == run).scalar_subquery()

    tables = (
        t.observations, t.decisions, t.allocations, t.room_decisions, t.actions, t.failures,
    )  # fmt: skip
    with store.reading() as connection:
        row = connection.execute(select(*map(highest, tables))).one()
    return Position(*(int(number or 0) for number in row))


def newest_s(store: HistoryStore, run: int) -> float:
    """When the newest thing that a run holds was seen, decided or done; 0 where it holds none."""
    newest = [
        select(func.max(table.c.at_s)).where(table.c.run_id == run).scalar_subquery()
        for table in (t.observations, t.decisions, t.room_decisions, t.actions, t.failures)
    ]
    with store.reading() as connection:
        row = connection.execute(select(*newest)).one()
    return max((float(at_s) for at_s in row if at_s is not None), default=0.0)


@dataclass(frozen=True)
class Worst:
    """The periods of a part of a run by number, each with its greatest latency (NaN: none)."""

    numbers: tuple[int, ...]
    latency_s: tuple[float, ...]


def worst_latencies(
    store: HistoryStore, run: int, until: Position, since_s: float | None, until_s: float | None
) -> Worst:
    """What is needed to choose among very many periods, without reading them."""
    table = t.observations
    query = select(table.c.seq, table.c.latency_max_s).where(
        table.c.run_id == run, table.c.seq <= until.observations
    )
    if since_s is not None:
        query = query.where(table.c.at_s >= since_s)
    if until_s is not None:
        query = query.where(table.c.at_s <= until_s)
    with store.reading() as connection:
        found = connection.execute(query.order_by(table.c.seq)).all()
    return Worst(
        tuple(number for number, _ in found),
        tuple(math.nan if worst is None else float(worst) for _, worst in found),
    )


def news(
    store: HistoryStore, run: int, since: Position, until: Position,
    since_s: float | None = None, until_s: float | None = None,
    numbers: Sequence[int] | None = None,
) -> News:  # fmt: skip
    """What came between two positions, or the part of it between two moments.

    Where `numbers` are given, only those periods are read, and all that was decided.
    """

    def part(name: str) -> Within:
        return Within(since_s, until_s, (getattr(since, name), getattr(until, name)))

    seen, decided = part("observations"), part("decisions")
    periods = (
        store.read_observations(run, seen) if numbers is None else store.read_periods(run, numbers)
    )
    return News(
        tuple(periods),
        tuple(store.read_decisions(run, decided)),
        tuple(store.read_shadows(run, decided)),
        tuple(store.read_allocations(run, part("allocations"))),
        tuple(store.read_admissions(run, seen)),
        tuple(store.read_room_decisions(run, part("room_decisions"))),
        tuple(store.read_actions(run, part("actions"))),
        tuple(store.read_failures(run, part("failures"))),
    )


@dataclass(frozen=True)
class Counts:
    """How often something happened in a run, by what it was."""

    decisions: Mapping[tuple[str, bool], int]  # by policy and whether it only watched
    actions: Mapping[tuple[str, bool], int]  # by name and whether it was done
    failures: Mapping[str, int]  # by stage


def counts(store: HistoryStore, run: int) -> Counts:
    """Totals that only grow while a run is written."""
    with store.reading() as connection:

        def grouped(table: Table, *names: str) -> list[tuple[object, ...]]:
            columns = [table.c[name] for name in names]
            query = select(*columns, func.count()).where(table.c.run_id == run).group_by(*columns)
            return [tuple(row) for row in connection.execute(query)]

        decisions = grouped(t.decisions, "policy", "shadow")
        actions = grouped(t.actions, "action", "done")
        failures = grouped(t.failures, "stage")
    return Counts(
        {(str(policy), bool(shadow)): _whole(n) for policy, shadow, n in decisions},
        {(str(action), bool(done)): _whole(n) for action, done, n in actions},
        {str(stage): _whole(n) for stage, n in failures},
    )


def _whole(value: object) -> int:
    assert isinstance(value, int)
    return value
