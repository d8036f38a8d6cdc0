"""What is remembered of runs, in SQLite or any database SQLAlchemy speaks to.

One writer for each run (the loop), any number of readers. A period is one transaction.
"""

import math
import threading
from collections import defaultdict, deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any, Self, TypeVar

from sqlalchemy import (
    ColumnElement,
    Connection,
    Engine,
    Select,
    Table,
    insert,
    inspect,
    select,
    update,
)
from sqlalchemy.exc import InterfaceError, OperationalError, SQLAlchemyError, TimeoutError

from penstock.config import Settings
from penstock.control.history import rows
from penstock.control.history import tables as t
from penstock.control.history.retention import Forgotten, Retention, give_back, prune
from penstock.control.records import (
    TRAINING,
    ActionRecord,
    AllocationRecord,
    DecisionRecord,
    FailureRecord,
    RunRecord,
)
from penstock.errors import InvalidInput, Unavailable
from penstock.masking import masked_url
from penstock.model.decision import RoomDecision
from penstock.model.observation import AdmissionRecord, Observation

MOST_NAMED = 500  # numbers in one statement; databases have limits
# Kept while the database is away, of about a kilobyte each; then the oldest periods go.
MOST_WAITING_ROWS = 100_000
PRUNE_EVERY_S = 3600.0
EVERYTHING = Retention()
PART_TABLES = frozenset(rows.PARTS.values())
GROUPS_OF_A_ROW = 10  # key groups that need as much room as a row without any

Record = TypeVar("Record")


@dataclass(frozen=True)
class Within:
    """Which part of a run is read; what is None does not limit it."""

    since_s: float | None = None
    until_s: float | None = None
    span: tuple[int, int] | None = None  # rows numbered above the first and up to the second


ALL = Within()


class HistoryStore:
    """A database of runs."""

    def __init__(self, where: str, create: bool = True) -> None:
        """Open a file or SQLAlchemy URL; made if missing and `create`, refused otherwise."""
        self._engine = t.connect(where, create)
        self.where = masked_url(where)

    def begin(self, run: RunRecord, kept: Retention = EVERYTHING) -> "RunHistory":
        """A new run, to be written through what is returned; what is not kept goes meanwhile."""
        with self._engine.begin() as connection:
            made = connection.execute(insert(t.runs), asdict(run)).inserted_primary_key
        assert made is not None
        return RunHistory(self._engine, int(made[0]), run, kept)

    def prune(self, kept: Retention, now_s: float) -> Forgotten:
        """Forget what is not to be kept, and give the room back."""
        forgotten = prune(self._engine, kept, now_s)
        give_back(self._engine)
        return forgotten

    def runs(self) -> dict[int, RunRecord]:
        """All runs by number, oldest first."""
        with self.reading() as connection:
            columns = t.columns_of(connection, t.runs)
            found = connection.execute(select(*columns).order_by(t.runs.c.id)).mappings().all()
        return {row["id"]: rows.read_record(row, RunRecord) for row in found}

    def read_rates(self, topology: str) -> list[tuple[float, float]]:
        """When, and what rate was offered then, over all runs of a topology."""
        wanted = (
            select(t.observations.c.at_s, t.observations.c.arrival_rate_per_s)
            .join(t.runs, t.runs.c.id == t.observations.c.run_id)
            .where(t.runs.c.topology == topology, t.observations.c.arrival_rate_per_s >= 0)
            .where(t.runs.c.policy != TRAINING)  # at no time of any day
        )
        with self.reading() as connection:
            return [(float(at_s), float(rate)) for at_s, rate in connection.execute(wanted)]

    def latest_run(self) -> int:
        """The number of the newest run."""
        runs = self.runs()
        if not runs:
            raise InvalidInput(f"{self.where} holds no run yet.")
        return max(runs)

    def read_observations(self, run: int, within: Within = ALL) -> list[Observation]:
        """The observations of a run in the order they were made, exactly as they were written."""
        with self.reading() as connection:
            parents = _fetch(connection, t.observations, run, within)
            if not parents:
                return []
            first, last = parents[0]["seq"], parents[-1]["seq"]
            return _assembled(connection, parents, lambda c: c.seq.between(first, last))

    def read_periods(self, run: int, numbers: Sequence[int]) -> list[Observation]:
        """The observations of these numbers, in their order, and nothing in between."""
        found: list[Observation] = []
        with self.reading() as connection:
            for start in range(0, len(numbers), MOST_NAMED):
                named = list(numbers[start : start + MOST_NAMED])
                condition = t.observations.c.seq.in_(named)
                columns = t.columns_of(connection, t.observations)
                query = select(*columns).where(t.observations.c.run_id == run, condition)
                parents = connection.execute(query.order_by(t.observations.c.seq)).mappings()
                found += _assembled(connection, list(parents), partial(_numbered, named))
        return found

    def read_decisions(self, run: int, within: Within = ALL) -> list[DecisionRecord]:
        """The decisions of a run, oldest first, without those of shadows."""
        acting = t.decisions.c.shadow.is_(False)
        return self._read(t.decisions, rows.read_decision, run, within, acting)

    def read_shadows(self, run: int, within: Within = ALL) -> list[DecisionRecord]:
        """What policies that only watched a run would have decided, oldest first."""
        watching = t.decisions.c.shadow.is_(True)
        return self._read(t.decisions, rows.read_decision, run, within, watching)

    def read_allocations(self, run: int, within: Within = ALL) -> list[AllocationRecord]:
        """Where key groups were to live in a run, oldest first."""
        return self._read(
            t.allocations, partial(rows.read_record, kind=AllocationRecord), run, within
        )

    def read_room_decisions(self, run: int, within: Within = ALL) -> list[RoomDecision]:
        """What was decided elsewhere than in the loop (routes), oldest first."""
        return self._read(t.room_decisions, rows.read_room_decision, run, within)

    def read_actions(self, run: int, within: Within = ALL) -> list[ActionRecord]:
        """What was done in a run, oldest first."""
        return self._read(t.actions, rows.read_action, run, within)

    def read_admissions(self, run: int, within: Within = ALL) -> list[AdmissionRecord]:
        """What sources of many streams decided over their lanes, oldest first."""
        with self.reading() as connection:
            parents = _fetch(connection, t.observations, run, within)
        found = [record for row in parents for record in rows.read_admissions(row)]
        return sorted(found, key=lambda record: record.at_s)

    def read_failures(self, run: int, within: Within = ALL) -> list[FailureRecord]:
        """What failed in the loop of a run, oldest first."""
        return self._read(t.failures, partial(rows.read_record, kind=FailureRecord), run, within)

    def _read(
        self, table: Table, read: Callable[[rows.Row], Record], run: int, within: Within,
        also: ColumnElement[bool] | None = None,
    ) -> list[Record]:  # fmt: skip
        with self.reading() as connection:
            found = _fetch(connection, table, run, within, also)
            return [read(row) for row in found]

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """A connection; what the database says when it fails becomes one sentence."""
        try:
            with self._engine.connect() as connection:
                yield connection
        except SQLAlchemyError as error:
            reason = " ".join(str(getattr(error, "orig", error)).split())
            raise Unavailable(f"the history {self.where} cannot be read: {reason}.") from error

    def close(self) -> None:
        """Let go of the database."""
        self._engine.dispose()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def retention(settings: Settings) -> Retention:
    """What a run's settings say of how much is kept."""
    most = settings.history_mb
    return Retention(settings.history_age_s, None if most is None else most * 2**20)


class RunHistory:
    """The History port over one run of a store.

    Records wait in memory until `flush` writes them in one transaction. When the database is away
    they go on waiting, up to a limit; what it refuses for good is let go, so that one bad record
    cannot stop all later ones.
    """

    def __init__(
        self, engine: Engine, run_id: int, run: RunRecord, kept: Retention = EVERYTHING
    ) -> None:
        self.run_id = run_id
        self._engine, self._run = engine, run
        self._kept, self._simulated = kept, run_id if run.started_at_s == 0 else None
        self._newest_s, self._pruned_s = -math.inf, -math.inf
        self._lock = threading.Lock()
        self._waiting: rows.Rows = []
        self._seq = 0

    def observed(self, observation: Observation) -> None:
        with self._lock:
            self._seq += 1
            self._newest_s = max(self._newest_s, observation.at_s)
            self._waiting += rows.observation_rows(observation, self.run_id, self._seq)

    def decided(self, record: DecisionRecord) -> None:
        self._keep(t.decisions, rows.decision_row(record, self.run_id))

    def allocated(self, record: AllocationRecord) -> None:
        self._keep(t.allocations, rows.record_row(record, self.run_id))

    def room_decided(self, decision: RoomDecision) -> None:
        self._keep(t.room_decisions, rows.room_decision_row(decision, self.run_id))

    def acted(self, record: ActionRecord) -> None:
        self._keep(t.actions, rows.action_row(record, self.run_id))

    def failed(self, record: FailureRecord) -> None:
        self._keep(t.failures, rows.record_row(record, self.run_id))

    def flush(self) -> None:
        with self._lock:
            by_table: dict[Table, list[dict[str, Any]]] = defaultdict(list)
            for table, row in self._waiting:
                by_table[table].append(row)
            try:
                with self._engine.begin() as connection:
                    if by_table:
                        self._stay(connection)
                    for table in t.PARENTS_FIRST:
                        if table in by_table:
                            connection.execute(insert(table), by_table[table])
            except (OperationalError, InterfaceError, TimeoutError):
                self._shorten()
                raise
            except Exception:
                self._waiting = []
                raise
            self._waiting = []
        if self._kept != EVERYTHING and self._newest_s - self._pruned_s >= PRUNE_EVERY_S:
            self._pruned_s = self._newest_s
            prune(self._engine, self._kept, self._newest_s, self._simulated, self.run_id)

    def end(self, at_s: float) -> None:
        """Write what waits and note when the run ended."""
        self.flush()
        with self._engine.begin() as connection:
            ended = update(t.runs).where(t.runs.c.id == self.run_id).values(ended_at_s=at_s)
            connection.execute(ended)

    def _stay(self, connection: Connection) -> None:
        """Enter the run again if others took it for one that was killed: it was silent too long."""
        mine = select(t.runs.c.id).where(t.runs.c.id == self.run_id)
        if connection.execute(mine).first() is None:
            connection.execute(insert(t.runs), asdict(self._run) | {"id": self.run_id})

    def _keep(self, table: Table, row: dict[str, Any]) -> None:
        with self._lock:
            self._newest_s = max(self._newest_s, row["at_s"])
            self._waiting.append((table, row))

    def _shorten(self) -> None:
        """Drop the oldest, and parts with their observation: without it they cannot be written."""
        kept = deque(self._waiting)
        size = sum(_size(row) for _, row in kept)
        while size > MOST_WAITING_ROWS:
            size -= _size(kept.popleft()[1])
            while kept and kept[0][0] in PART_TABLES:
                size -= _size(kept.popleft()[1])
        self._waiting = list(kept)


def _size(row: dict[str, Any]) -> int:
    """What a row needs while it waits, in rows without key groups."""
    groups = row.get("key_groups")
    return 1 if groups is None else 1 + len(groups["load_s"]) // GROUPS_OF_A_ROW


def _fetch(
    connection: Connection,
    table: Table,
    run: int,
    within: Within,
    also: ColumnElement[bool] | None = None,
) -> list[rows.Row]:
    order = table.c.seq if "seq" in table.c else table.c.id
    if table is t.allocations and not inspect(connection).has_table(table.name):
        return []  # written before there were any
    later = table in {column.table for column in t.LATER_COLUMNS}
    columns = t.columns_of(connection, table) if later else table.c
    query: Select[Any] = select(*columns).where(table.c.run_id == run).order_by(order)
    if within.since_s is not None:
        query = query.where(table.c.at_s >= within.since_s)
    if within.until_s is not None:
        query = query.where(table.c.at_s <= within.until_s)
    if within.span is not None:
        after, last = within.span
        query = query.where(order > after, order <= last)
    if also is not None:
        query = query.where(also)
    return list(connection.execute(query).mappings())


def _numbered(named: list[int], columns: Any) -> ColumnElement[bool]:
    condition: ColumnElement[bool] = columns.seq.in_(named)
    return condition


def _assembled(
    connection: Connection, parents: list[rows.Row], condition: Callable[[Any], ColumnElement[bool]]
) -> list[Observation]:
    """Observations of their rows, and of those of their parts that are chosen by number."""
    if not parents:
        return []
    run = parents[0]["run_id"]
    parts: defaultdict[int, dict[str, list[rows.Row]]] = defaultdict(
        lambda: {name: [] for name in rows.PARTS}
    )
    for name, table in rows.PARTS.items():
        if table is t.state and not inspect(connection).has_table(table.name):
            continue  # written before there was any
        query = select(table).where(table.c.run_id == run, condition(table.c))
        ordered = query.order_by(table.c.seq, table.c.position)
        for row in connection.execute(ordered).mappings():
            parts[row["seq"]][name].append(row)
    return [rows.read_observation(parent, parts[parent["seq"]]) for parent in parents]
