"""How a history forgets: by age, and by size, so that a run of years needs as much as one of weeks.

A period goes whole, with everything that was decided and done by then. Runs of which nothing is
left go too, also those that were killed and have no end; not the one whose writer forgets.
"""

from dataclasses import dataclass

from sqlalchemy import (
    ColumnElement,
    Connection,
    Engine,
    delete,
    exists,
    func,
    select,
    text,
    true,
    union_all,
)

from penstock.control.history import tables as t
from penstock.control.history.rows import PARTS

EVENTS = (t.decisions, t.allocations, t.actions, t.room_decisions, t.failures)
USUAL_ROW_BYTES = 500  # where the database does not say how much room it takes
LEFT_OF_LIMIT = 0.9  # so that the next period is not over the limit again


@dataclass(frozen=True)
class Retention:
    """What is kept; None where nothing limits it."""

    age_s: float | None = None
    bytes: int | None = None


@dataclass(frozen=True)
class Forgotten:
    """What went."""

    periods: int = 0
    runs: int = 0


def prune(
    engine: Engine, kept: Retention, now_s: float, simulated: int | None = None,
    writing: int | None = None,
) -> Forgotten:  # fmt: skip
    """Forget what is older than the age, then the oldest until the rest is within the size.

    Simulated runs begin at a time 0 of their own. They do not age, but one that is being written,
    whose number is `simulated`, forgets by its own clock. The run whose number is `writing` stays.
    """
    aging = t.runs.c.started_at_s > 0 if simulated is None else t.runs.c.id == simulated
    with engine.begin() as connection:
        before = _counts(connection)
        if kept.age_s is not None:
            _forget_before(connection, now_s - kept.age_s, aging, writing)
        used = used_bytes(connection) if kept.bytes is not None else 0
        if kept.bytes is not None and used > kept.bytes:
            cut_s = _cut_s(connection, LEFT_OF_LIMIT * kept.bytes / used)
            _forget_before(connection, cut_s, true(), writing)
        after = _counts(connection)
    return Forgotten(before[0] - after[0], before[1] - after[1])


def used_bytes(connection: Connection) -> int:
    """Room that the history takes, without what it has already given back."""
    if connection.dialect.name == "sqlite":
        pages, free, size = (
            int(connection.execute(text(f"PRAGMA {name}")).scalar_one())
            for name in ("page_count", "freelist_count", "page_size")
        )
        return (pages - free) * size
    if connection.dialect.name == "postgresql":
        names = [table.name for table in t.PARENTS_FIRST]
        sizes = (func.pg_total_relation_size(name) for name in names)
        return sum(int(connection.execute(select(size)).scalar_one()) for size in sizes)
    counted = (select(func.count()).select_from(table) for table in t.PARENTS_FIRST)
    return USUAL_ROW_BYTES * sum(int(connection.execute(one).scalar_one()) for one in counted)


def give_back(engine: Engine) -> None:
    """Make the file of an SQLite history as small as what it holds; others do it by themselves."""
    if engine.dialect.name == "sqlite":
        with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            connection.execute(text("VACUUM"))


def _cut_s(connection: Connection, share: float) -> float:
    """The moment from which on there is that share of all that was observed, done or failed."""
    moments = union_all(*(select(table.c.at_s) for table in (t.observations, *EVENTS))).subquery()
    whole = int(connection.execute(select(func.count()).select_from(moments)).scalar_one())
    gone = min(whole - 1, int((1 - share) * whole))
    query = select(moments.c.at_s).order_by(moments.c.at_s).offset(max(0, gone)).limit(1)
    return float(connection.execute(query).scalar_one_or_none() or 0.0)


def _forget_before(
    connection: Connection, at_s: float, of: ColumnElement[bool], writing: int | None
) -> None:
    runs = select(t.runs.c.id).where(of)
    old = (t.observations.c.at_s < at_s) & t.observations.c.run_id.in_(runs)
    for part in PARTS.values():
        parent = select(t.observations.c.seq).where(
            old, t.observations.c.run_id == part.c.run_id, t.observations.c.seq == part.c.seq
        )
        connection.execute(delete(part).where(exists(parent)))
    connection.execute(delete(t.observations).where(old))
    for table in EVENTS:
        connection.execute(delete(table).where(table.c.at_s < at_s, table.c.run_id.in_(runs)))
    left = [exists().where(table.c.run_id == t.runs.c.id) for table in (t.observations, *EVENTS)]
    killed = t.runs.c.ended_at_s.is_(None) & (t.runs.c.started_at_s < at_s)
    over = delete(t.runs).where(of, (t.runs.c.ended_at_s < at_s) | killed, *(~one for one in left))
    connection.execute(over if writing is None else over.where(t.runs.c.id != writing))


def _counts(connection: Connection) -> tuple[int, int]:
    counted = (select(func.count()).select_from(table) for table in (t.observations, t.runs))
    periods, runs = (int(connection.execute(one).scalar_one()) for one in counted)
    return periods, runs
