"""The number of key groups of a checkpoint, changed while its query stands still.

Spark divides the state anew in a copy, by its own means. All of it is read before and
after: the same rows must be there, each in the key group that Spark will look for it in. The copy
then takes the checkpoint's place, and the old one is kept until a batch has committed in the new.
"""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from penstock.errors import InvalidInput, InvalidTopology, PenstockError, Unavailable
from penstock.spark.checkpoint.carried_state import forget_after, next_directory, numbered
from penstock.spark.checkpoint.driver_lock import held_by_driver
from penstock.spark.checkpoint.durable_files import (
    copy_tree,
    exchange,
    remove_tree,
    rename,
    sync_directory,
    sync_tree,
)
from penstock.spark.checkpoint.layout import Checkpoint, begun
from penstock.spark.checkpoint.plan_record import PlanRecord, described
from penstock.spark.checkpoint.stored_query import StoredQuery, stored_query
from penstock.spark.handles.messages import first_line
from penstock.spark.handles.state_reading import StoreDigest, state_digests
from penstock.spark.handles.state_rewriting import repartition_state

_NEW, _OLD = ".new-key-groups", ".old-key-groups"


@dataclass(frozen=True)
class ChangedQuery:
    """A query whose state has another number of key groups now."""

    name: str
    before: int
    after: int
    rows: int  # of state, all of which were compared
    kept: str  # the old checkpoint


def stored_queries(directory: Path, wanted: int) -> tuple[StoredQuery, ...]:
    """The queries of a checkpoint that can have so many key groups; refuses what cannot."""
    if begun(directory):
        with Checkpoint(directory) as held:
            return _of_run(held, wanted)
    run = directory.absolute().parent.parent
    if (run / "penstock").is_dir() and begun(run):
        raise InvalidInput(f"{directory} is one query of a run; give the run's checkpoint, {run}.")
    if not (directory / "offsets").is_dir():
        if directory.with_name(directory.name + _NEW).is_dir():
            return ()  # another change was cut short between its two renames
        raise InvalidInput(
            f"{directory} is no checkpoint: neither one of penstock run (penstock/identity.json) "
            "nor one of a Spark query (offsets)."
        )
    found = stored_query(directory.name, directory, lambda _: True)
    return () if found is None or found.key_groups == wanted else (found,)


def change_key_groups(
    session: SparkSession, directory: Path, wanted: int
) -> tuple[ChangedQuery, ...]:
    """Divide the state of all queries of a checkpoint anew; the session must not run any."""
    if not begun(directory):
        return _changed_in_place(session, directory, wanted)
    with Checkpoint(directory) as held, held_by_driver(session, held):
        queries = _of_run(held, wanted)
        copies = [q.folder.with_name(next_directory(q.name, q.folder)) for q in queries]
        record = _record(held)
        for query, copy in zip(queries, copies, strict=True):
            record = record.superseding(query.name, copy.name)  # goes if this is cut short
        if copies:
            held.record_plan(record.to_json())
        try:
            done = []
            for query, copy in zip(queries, copies, strict=True):
                done.append(_divided(session, query, copy, wanted))
                moved = record.moved(query.name, copy.name)
                record = moved.superseding(query.name, query.folder.name)
            held.record_plan(replace(record, key_groups=wanted).to_json())
        except Exception:
            for query, copy in zip(queries, copies, strict=True):
                if held.query_folder(query.name) != copy:
                    with suppress(PenstockError):  # the next run does, or the next attempt
                        remove_tree(copy)
            raise
        return tuple(done)


def _record(held: Checkpoint) -> PlanRecord:
    document = held.plan()
    if document is None:
        raise InvalidInput(
            f"checkpoint {held.directory} was begun by an earlier Penstock and has no plan; run it "
            "once more before its key groups are changed."
        )
    return PlanRecord.from_json(document)


def _of_run(held: Checkpoint, wanted: int) -> tuple[StoredQuery, ...]:
    record = _record(held)
    for name, fused in record.fingerprints.items():
        raise InvalidTopology(
            f"query {name!r} of checkpoint {held.directory} has {described(fused)}; Spark would "
            "divide their state by all columns of their keys. Take them apart first (penstock run "
            "... --plan none --apply), change the number, and fuse them again (--plan FILE "
            "--apply)."
        )
    handed = held.last_handed()
    queries = []
    for plan in record.plan.queries:

        def may_be_written(batch: int, query: str = plan.name) -> bool:
            if (held.commits(query) / f"{batch}.json").exists():
                return True
            return handed.get(query, batch) >= batch

        found = stored_query(plan.name, held.query_folder(plan.name), may_be_written)
        if found is not None and found.key_groups != wanted:
            queries.append(found)
    return tuple(queries)


def _divided(session: SparkSession, query: StoredQuery, new: Path, wanted: int) -> ChangedQuery:
    """A copy of a query's checkpoint in so many key groups, compared row by row with the old."""
    remove_tree(new)  # of an attempt that was cut short
    copy_tree(query.folder, new)
    forget_after(new / "offsets", query.batch)
    where = f"file:{new}"
    try:
        before = state_digests(session, where, query.batch, query.key_groups)
        repartition_state(session, where, wanted)
        after = state_digests(session, where, query.batch + 1, wanted)
        wrong = _misplaced(before, after)
        same = [replace(s, elsewhere=0) for s in before] == [replace(s, elsewhere=0) for s in after]
        if wrong or not same:
            raise PenstockError(
                f"the state read back differs from the one before: {sum(s.rows for s in before)} "
                f"rows -> {sum(s.rows for s in after)}, {wrong} of them in the wrong key group"
            )
    except (PySparkException, PenstockError) as error:
        remove_tree(new)
        raise InvalidTopology(
            f"query {query.name!r}: its state was not divided into {wanted} key groups, and the "
            f"checkpoint is as it was: {first_line(error)}"
        ) from error
    sync_tree(new)
    rows = sum(store.rows for store in after)
    return ChangedQuery(query.name, query.key_groups, wanted, rows, str(query.folder))


def _keep_old(new: Path, old: Path, wanted: int) -> None:
    """After an exchange the old checkpoint has the name of the copy, now or from a change before.

    A copy that was cut short has the number of what it was copied from.
    """
    found = None
    with suppress(PenstockError):  # it is not whole
        found = stored_query(new.name, new, lambda _: False)
    if found is not None and found.key_groups != wanted and not old.exists():
        rename(new, old)
    else:
        remove_tree(new)
    sync_directory(new.parent)


def _replace(directory: Path, new: Path, old: Path) -> None:
    """The same where two names cannot change at once: for a moment nothing has the name."""
    rename(directory, old)
    try:
        rename(new, directory)
    except PenstockError:
        rename(old, directory)
        raise


def _refuse_if_run(query: StoredQuery, new: Path) -> None:
    """Refuse a copy that its query has left behind meanwhile; Spark holds no lock of ours."""
    newest = max(numbered(query.folder / "offsets"), default=-1)
    if newest != query.planned:
        remove_tree(new)
        raise Unavailable(
            f"checkpoint {query.folder} is in use: batch {newest} was planned while its state was "
            "divided; stop its query, and change the number after that."
        )


def _misplaced(before: Sequence[StoreDigest], after: Sequence[StoreDigest]) -> int:
    """Rows where Spark will not look for them.

    Where it did not go by the whole key before, as for sessions, it does not now.
    """
    pairs = zip(before, after, strict=True)
    return sum(new.elsewhere for old, new in pairs if not old.elsewhere)


def _changed_in_place(
    session: SparkSession, directory: Path, wanted: int
) -> tuple[ChangedQuery, ...]:
    """The same for the checkpoint of a query without Penstock, whose path must stay."""
    directory = directory.absolute()
    new, old = (directory.with_name(directory.name + suffix) for suffix in (_NEW, _OLD))
    if not directory.exists() and new.is_dir():
        rename(new, directory)  # where a change before this one was cut short
    done = []
    for query in stored_queries(directory, wanted):
        if old.exists():
            raise InvalidInput(
                f"{old} is left of an earlier change; remove it once the query has committed a "
                "batch since."
            )
        done.append(_divided(session, query, new, wanted))
        _refuse_if_run(query, new)
        if not exchange(directory, new):
            _replace(directory, new, old)
    _keep_old(new, old, wanted)
    return tuple(replace(one, kept=str(old)) for one in done)
