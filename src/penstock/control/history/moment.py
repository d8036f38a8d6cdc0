"""What a history holds of one decision: all that it rested on, and what came of it."""

from dataclasses import dataclass

from sqlalchemy import func, select

from penstock.control.history import tables as t
from penstock.control.history.store import HistoryStore, Within
from penstock.control.records import ActionRecord, DecisionRecord, RunRecord
from penstock.errors import InvalidInput
from penstock.model.observation import Observation

MOST_PERIODS = 1_440  # as far as any policy looks back


@dataclass(frozen=True)
class Moment:
    """A decision of a run, with what was seen and done before it."""

    run: RunRecord
    decision: DecisionRecord
    window: tuple[Observation, ...]  # oldest first, up to the decision
    actions: tuple[ActionRecord, ...]  # before it
    outcomes: tuple[ActionRecord, ...]  # of it


def moment_of(store: HistoryStore, number: int, at_s: float | None = None) -> Moment:
    """The last decision of a run, or the one that held at a time."""
    run = store.runs()[number]
    table = t.decisions
    query = select(func.max(table.c.at_s)).where(
        table.c.run_id == number, table.c.shadow.is_(False)
    )
    with store.reading() as connection:
        if at_s is not None:
            query = query.where(table.c.at_s <= at_s)
        made_s = connection.execute(query).scalar()
    if made_s is None:
        when = "" if at_s is None else " at or before that time"
        raise InvalidInput(f"run {number} of {run.topology!r} holds no decision{when}.")
    since_s = made_s - MOST_PERIODS * run.period_s
    decision = store.read_decisions(number, Within(made_s, made_s))[-1]
    acts = store.read_actions(number, Within(since_s, made_s))
    return Moment(
        run,
        decision,
        tuple(store.read_observations(number, Within(since_s, made_s))),
        tuple(act for act in acts if act.at_s < made_s),
        tuple(act for act in acts if act.at_s == made_s),
    )


def last_change_s(store: HistoryStore, number: int, until_s: float) -> float | None:
    """When executors were last changed, at or before a time; None where they never were."""
    table = t.actions
    query = select(func.max(table.c.at_s)).where(
        table.c.run_id == number, table.c.at_s <= until_s, table.c.done.is_(True),
        table.c.action == "executors",
    )  # fmt: skip
    with store.reading() as connection:
        found = connection.execute(query).scalar()
    return None if found is None else float(found)
