"""A recorded run as the steps its loop took, so that what shows a run can show it from afar."""

from collections.abc import Iterator, Sequence
from dataclasses import astuple, replace
from typing import TypeVar

from penstock.control.actions import SetExecutors
from penstock.control.history.store import HistoryStore
from penstock.control.history.tail import News, Position, news, position
from penstock.control.records import DecisionRecord, RunRecord
from penstock.control.step import Step

At = TypeVar("At")
ROWS_OF_A_PERIOD = 16  # of one kind, such as decisions with those of shadows


def steps_since(
    store: HistoryStore, number: int, seen: Position
) -> tuple[list[Step], Position]:  # fmt: skip
    """The periods that were written since a reader last looked, and where it stands now."""
    now = position(store, number)
    if now == seen:
        return [], seen
    return steps_of(store.runs()[number], news(store, number, seen, now)), now


def newest_periods(now: Position, periods: int) -> Position:
    """From where a reader begins that wants to see only so many periods of what there is."""
    rows = [max(0, number - periods * ROWS_OF_A_PERIOD) for number in astuple(now)]
    return replace(Position(*rows), observations=max(0, now.observations - periods))


def steps_of(run: RunRecord, found: News) -> list[Step]:
    """Each observation with what was decided and done at its time."""
    decisions = {d.at_s: d for d in found.decisions}
    return [_step(run, found, decisions.get(seen.at_s), seen.at_s) for seen in found.observations]


def _step(run: RunRecord, found: News, made: DecisionRecord | None, at_s: float) -> Step:
    observation = next(_at(found.observations, at_s))
    step = Step(
        at_s, observation, made,
        allocation=next(_at(found.allocations, at_s), None),
        room_decisions=tuple(_at(found.room_decisions, at_s)),
        failures=tuple(_at(found.failures, at_s)),
    )  # fmt: skip
    if made is None:
        return step
    outcomes = [act.outcome for act in _at(found.actions, at_s)]
    scaled = [one for one in outcomes if isinstance(one.action, SetExecutors)]
    slots = run.slots_per_executor
    return replace(
        step,
        executors_before=-(-made.current.processors // slots),
        executors_wanted=-(-made.guarded.processors // slots),
        outcome=scaled[-1] if scaled else None,
    )


def _at(records: Sequence[At], at_s: float) -> Iterator[At]:
    return (one for one in records if one.at_s == at_s)  # type: ignore[attr-defined]
