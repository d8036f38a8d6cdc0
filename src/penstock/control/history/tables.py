"""The tables of a history, and how a database becomes one.

A float column holds NULL where the observation holds NaN (SQLite knows no NaN). Rows of a period
are joined by (run_id, seq), which the one writer of a run counts, so a period is written without
asking the database for keys.
"""

import json
import os
import time
from pathlib import Path
from typing import Any

from sqlalchemy import (
    JSON,
    BigInteger,
    Boolean,
    Column,
    Connection,
    Double,
    Engine,
    ForeignKey,
    ForeignKeyConstraint,
    Index,
    Integer,
    MetaData,
    Table,
    Text,
    create_engine,
    event,
    insert,
    inspect,
    make_url,
    select,
    text,
    update,
)  # fmt: skip
from sqlalchemy.engine import URL
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.exc import ArgumentError, DatabaseError, NoSuchModuleError
from sqlalchemy.pool import ConnectionPoolEntry, StaticPool
from sqlalchemy.schema import CreateColumn

from penstock.errors import InvalidInput, Unavailable
from penstock.masking import masked_url

SCHEMA_VERSION = 9
# Forms that are read as they are, and become ours when they are opened to be written: form 4 has
# no plans of room decisions, form 5 neither numbers of decisions nor sinks, form 6 does not say how
# old a rate is, form 7 not whether others worked on the same cluster, and form 8 neither the share
# that was promised nor the latency that it kept.
OLDER_VERSIONS = (4, 5, 6, 7, 8)
SQLITE_BUSY_S = 5.0  # readers never block in WAL mode; this is for a second writer

CREATION_ATTEMPTS = 12  # several programs may find the same database empty at once
CREATION_PAUSE_S = 0.05  # after the first attempt, and as much longer after each that follows

metadata = MetaData()
_PREFIX = "penstock_"  # the database may hold other things too

# SQLite counts only a column of type INTEGER by itself.
_Id = BigInteger().with_variant(Integer, "sqlite")


def _float(name: str) -> Column[float]:
    return Column(name, Double, nullable=True)


version = Table(
    _PREFIX + "history", metadata, Column("version", Integer, primary_key=True, autoincrement=False)
)
runs = Table(
    _PREFIX + "runs", metadata,
    Column("id", _Id, primary_key=True),
    Column("topology", Text, nullable=False),
    Column("policy", Text, nullable=False),
    _float("started_at_s"), _float("period_s"), _float("max_latency_s"),
    Column("slots_per_executor", Integer, nullable=False),
    Column("dry_run", Boolean, nullable=False),
    _float("ended_at_s"),
    Column("executors_min", BigInteger, nullable=False),
    Column("executors_max", BigInteger, nullable=False),
    _float("batch_interval_s"), _float("foresight_s"),
    Column("edges", JSON, nullable=False),
    _float("share"),  # of the results that must be within max_latency_s
)  # fmt: skip
observations = Table(
    _PREFIX + "observations", metadata,
    Column("run_id", _Id, ForeignKey(runs.c.id), primary_key=True),
    Column("seq", _Id, primary_key=True, autoincrement=False),
    _float("at_s"), _float("period_s"), _float("arrival_rate_per_s"), _float("backlog_rows"),
    # All NULL when there was no latency, or no batch, to observe; a count says there was.
    Column("latency_count", BigInteger), _float("latency_mean_s"), _float("latency_p95_s"),
    _float("latency_max_s"), _float("latency_in_time_share"),
    _float("latency_share_s"),  # that the promised share of the results kept
    Column("batch_count", BigInteger), _float("batch_mean_duration_s"),
    _float("batch_mean_overhead_s"), _float("batch_mean_rows"),
    Column("missing", JSON, nullable=False),
    # Lanes, counts and decisions of sources of many streams, as the observation holds them.
    Column("sources", JSON, nullable=False),
    Column("sinks", JSON(none_as_null=True)),  # latency at each, where there are several
    _float("rate_age_s"),
    Column("part_of_cluster", Boolean),  # NULL: written before this was known
    Index(_PREFIX + "observations_by_time", "run_id", "at_s"),
)  # fmt: skip


def _part(name: str, *columns: Column[Any]) -> Table:
    """A table of what an observation holds several of, in order of `position`."""
    return Table(
        _PREFIX + name, metadata,
        Column("run_id", _Id, primary_key=True),
        Column("seq", _Id, primary_key=True, autoincrement=False),
        Column("position", Integer, primary_key=True, autoincrement=False),
        Column("name", Text, nullable=False),
        *columns,
        ForeignKeyConstraint(["run_id", "seq"], [observations.c.run_id, observations.c.seq]),
    )  # fmt: skip


operators = _part("operators", _float("arrival_rate_per_s"), _float("emission_rate_per_s"))
components = _part(
    "components",
    Column("operators", JSON, nullable=False),
    _float("arrival_rate_per_s"), _float("service_time_s"),
    Column("parallelism", BigInteger, nullable=False),
    _float("busy_s"), _float("backlog_rows"), _float("arrival_scv"), _float("service_scv"),
    # Columns of key groups as arrays: {"load_s": [...], "state_bytes": [...], "node": [...]}.
    Column("key_groups", JSON(none_as_null=True)),
    Column("tasks", BigInteger, nullable=False),
)  # fmt: skip
state = _part("state", Column("key_groups", JSON, nullable=False))
nodes = _part(
    "nodes",
    Column("slots", BigInteger, nullable=False),
    _float("busy_s"),
    Column("draining", Boolean, nullable=False),
)


def _event(name: str, *columns: Column[Any]) -> Table:
    return Table(
        _PREFIX + name, metadata,
        Column("id", _Id, primary_key=True),
        Column("run_id", _Id, ForeignKey(runs.c.id), nullable=False),
        _float("at_s"),
        *columns,
        Index(f"{_PREFIX}{name}_by_time", "run_id", "at_s"),
    )  # fmt: skip


decisions = _event(
    "decisions",
    Column("policy", Text, nullable=False),
    Column("current_processors", BigInteger, nullable=False),
    Column("suggested_processors", BigInteger, nullable=False),
    Column("guarded_processors", BigInteger, nullable=False),
    Column("current_parallelism", JSON, nullable=False),
    Column("suggested_parallelism", JSON, nullable=False),
    Column("guarded_parallelism", JSON, nullable=False),
    Column("reasons", JSON, nullable=False),
    Column("guard_reasons", JSON, nullable=False),
    Column("infeasible", Text),
    Column("dry_run", Boolean, nullable=False),
    Column("shadow", Boolean, nullable=False),
    _float("foreseen_rate_per_s"),
    Column("numbers", JSON(none_as_null=True)),
)
allocations = _event(
    "allocations",
    Column("policy", Text, nullable=False),
    Column("moves", JSON, nullable=False),  # [[component, key group, node], ...]
    _float("load_distance"), _float("planned_distance"), _float("bound"),
    _float("collocation"), _float("planned_collocation"),
    Column("leaving", JSON, nullable=False),
    Column("left_on_leaving", BigInteger, nullable=False),
    Column("holds_scaling", Text),
    Column("reasons", JSON, nullable=False),
    Column("infeasible", Text),
    Column("dry_run", Boolean, nullable=False),
)  # fmt: skip
actions = _event(
    "actions",
    Column("action", Text, nullable=False),
    Column("arguments", JSON, nullable=False),
    Column("done", Boolean, nullable=False),
    Column("detail", Text, nullable=False),
    _float("took_s"),
)
room_decisions = _event(
    "room_decisions",
    Column("room", Text, nullable=False),
    Column("policy", Text, nullable=False),
    Column("what", Text, nullable=False),
    Column("numbers", JSON, nullable=False),
    Column("reasons", JSON, nullable=False),
    Column("infeasible", Text),
    # {"components": [{"operators": [...], "key": [...]}, ...]} or {"order": [...]}: `what` is
    # then empty, as its text is made when it is shown.
    Column("plan", JSON(none_as_null=True)),
)
failures = _event(
    "failures", Column("stage", Text, nullable=False), Column("message", Text, nullable=False)
)


# Columns that older forms lack.
LATER_COLUMNS = (
    room_decisions.c.plan, decisions.c.numbers, observations.c.sinks, observations.c.rate_age_s,
    observations.c.part_of_cluster, observations.c.latency_share_s, runs.c.share,
)  # fmt: skip
PARENTS_FIRST = tuple(metadata.sorted_tables)  # the order in which rows can be written


def connect(where: str, create: bool) -> Engine:
    """An engine on a history; with `create` an empty or older database becomes one of our form."""
    url = _url(where)
    file = Path(url.database) if url.drivername.startswith("sqlite") and url.database else None
    if file is not None and str(file) != ":memory:":
        _touch_private(file, create)
    engine = _engine(url, create)
    shown = masked_url(where)
    try:
        if file is None:
            engine.connect().close()  # an absent server is found out once, not at every attempt
        if create:
            _make(engine)
        _check_version(engine, shown)
    except DatabaseError as error:
        engine.dispose()
        reason = " ".join(str(error.orig).split())
        raise Unavailable(f"the history {shown} cannot be opened: {reason}.") from error
    except InvalidInput:
        engine.dispose()
        raise
    return engine


def _url(where: str) -> URL:
    try:
        url = make_url(where) if "://" in where else URL.create("sqlite", database=where)
        url.get_dialect()
    except (ArgumentError, NoSuchModuleError, ValueError) as error:
        raise InvalidInput(
            f"history is {masked_url(where)!r}; give a file or an SQLAlchemy URL such as "
            "postgresql+psycopg://user@host/name."
        ) from error
    if url.host is not None and "@" in f"{url.host}{url.database}":
        raise InvalidInput(  # what follows the first @ would be taken for the host, and be shown
            f"history is {masked_url(where)!r} with an @ in its password; write it as %40."
        )
    return url


def _engine(url: URL, writing: bool) -> Engine:
    try:
        if not url.drivername.startswith("sqlite"):
            return create_engine(url, pool_pre_ping=True, json_serializer=_dense)
        if url.database in (None, "", ":memory:"):
            sharing = {"check_same_thread": False}
            return create_engine(
                url, poolclass=StaticPool, connect_args=sharing, json_serializer=_dense
            )
        engine = create_engine(url, connect_args={"timeout": SQLITE_BUSY_S}, json_serializer=_dense)
    except ImportError as error:
        raise Unavailable(f"history: the database driver is not installed ({error}).") from error
    if writing:  # looking at a database must not change it
        event.listen(engine, "connect", _write_ahead)
    return engine


def _dense(value: Any) -> str:
    """JSON without blanks: key groups are long lists, written every period."""
    return json.dumps(value, separators=(",", ":"))


def _write_ahead(connection: DBAPIConnection, _: ConnectionPoolEntry) -> None:
    """WAL, so that readers and the writer do not wait for each other."""
    cursor = connection.cursor()
    for pragma in ("journal_mode = WAL", "synchronous = NORMAL", "foreign_keys = ON"):
        cursor.execute(f"PRAGMA {pragma}")
    cursor.close()


def _touch_private(file: Path, create: bool) -> None:
    """Make the file readable by its owner only; SQLite gives its companions the same mode."""
    if not create and not file.exists():
        raise InvalidInput(f"there is no history at {file}; give another with --history.")
    if file.is_dir():
        raise InvalidInput(f"history is {str(file)!r}, a directory; give a file or a URL.")
    try:
        if not file.exists():
            os.close(os.open(file, os.O_CREAT | os.O_RDWR, 0o600))
    except OSError as error:
        raise InvalidInput(f"history {file} cannot be made: {error.strerror}.") from error


def _make(engine: Engine) -> None:
    """Tables and columns where they are missing; the version comes last, so with it all are there.

    Programs that write an older form at the moment may go on: new columns may be left out.
    """
    for attempts_left in reversed(range(CREATION_ATTEMPTS)):
        try:
            with engine.begin() as connection:
                found = _found_version(connection)
                if found in (None, SCHEMA_VERSION, *OLDER_VERSIONS):
                    metadata.create_all(connection)  # also tables that came to the form later
                if found is None:
                    connection.execute(insert(version), {"version": SCHEMA_VERSION})
                if found in OLDER_VERSIONS:
                    for column in LATER_COLUMNS:
                        _add_column(connection, column)
                    connection.execute(update(version), {"version": SCHEMA_VERSION})
            return
        except DatabaseError:
            if not attempts_left:
                raise
            # SQLite answers at once that it is locked where waiting could not end well.
            time.sleep(CREATION_PAUSE_S * (CREATION_ATTEMPTS - attempts_left))


def columns_of(connection: Connection, table: Table) -> list[Column[Any]]:
    """The columns that a table has in this database, which may be of an older form."""
    present = {column["name"] for column in inspect(connection).get_columns(table.name)}
    return [column for column in table.c if column.name in present]


def _add_column(connection: Connection, column: Column[Any]) -> None:
    """A column that came to the form later; not every database takes both steps as one."""
    table = column.table
    assert isinstance(table, Table)
    if column not in columns_of(connection, table):
        kind = CreateColumn(column).compile(dialect=connection.dialect)
        connection.execute(text(f"ALTER TABLE {table.name} ADD COLUMN {kind}"))


def _check_version(engine: Engine, shown: str) -> None:
    with engine.connect() as connection:
        found = _found_version(connection)
    if found is None:
        raise InvalidInput(f"{shown} holds no history of Penstock.")
    if found not in (SCHEMA_VERSION, *OLDER_VERSIONS):
        raise InvalidInput(
            f"{shown} is a history of form {found}; this Penstock reads form {SCHEMA_VERSION}."
        )


def _found_version(connection: Connection) -> int | None:
    if not inspect(connection).has_table(version.name):
        return None
    return connection.execute(select(version.c.version)).scalar()
