"""What the page shows of a run, as plain values; every number is the history's own."""

from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass
from typing import Any

from penstock.control.alternatives import why
from penstock.control.history.moment import moment_of
from penstock.control.history.store import HistoryStore, Within
from penstock.control.history.tail import News, Position, news, position, worst_latencies
from penstock.control.records import ActionRecord, AllocationRecord, DecisionRecord, RunRecord
from penstock.dashboard.series import (
    changed_places,
    columns,
    component_columns,
    forecast_columns,
    thinned,
    wanted_columns,
)
from penstock.documents import plain
from penstock.errors import InvalidInput
from penstock.model.decision import RoomDecision
from penstock.model.observation import AdmissionRecord, Observation

MOST_CHANGES = 1_000  # decisions that wanted something else; the newest are kept
MOST_UNCHANGED = 200  # decisions that wanted nothing
MOST_MOVES = 200
MOST_READ = 6_000  # rows of each kind of event, the newest
LONG_RUN_S = 7_200.0  # of a longer run, only the end is shown unless more is asked for


@dataclass(frozen=True)
class Range:
    """A part of a run by time; None is without limit."""

    since_s: float | None = None
    until_s: float | None = None


def run_list(store: HistoryStore) -> list[dict[str, Any]]:
    """All runs, newest first."""
    found = store.runs().items()
    return [run_values(number, record) for number, record in reversed(list(found))]


def run_values(number: int, record: RunRecord) -> dict[str, Any]:
    """A run by its number."""
    values: dict[str, Any] = plain({"id": number, **vars(record)})
    return values


def record_of(store: HistoryStore, run: int) -> RunRecord:
    """The run of that number, or a sentence."""
    found = store.runs().get(run)
    if found is None:
        raise InvalidInput(f"there is no run {run} in this history.")
    return found


def run_document(store: HistoryStore, run: int, wanted: Range) -> dict[str, Any]:
    """Everything the page shows of a part of a run."""
    record = record_of(store, run)
    now = position(store, run)
    if wanted == Range():
        wanted = _usual_range(store, run, now)
    part = (wanted.since_s, wanted.until_s)
    every = worst_latencies(store, run, now, *part)
    kept = [every.numbers[place] for place in thinned(every.latency_s)]
    new = news(store, run, _newest_events(now), now, *part, numbers=kept)
    shown = new.observations
    document = {
        "run": run_values(run, record),
        "position": str(now),
        "since_s": wanted.since_s,
        "until_s": wanted.until_s,
        "periods": {"shown": len(shown), "of": len(every.numbers)},
        "series": columns(shown),
        "forecast": forecast_columns(new.decisions, record.foresight_s),
        "components": component_columns(shown),
        "newest": newest(shown),
        "moves": changed_places(shown)[-MOST_MOVES:],
        **_events(new),
    }
    answer: dict[str, Any] = plain(document)
    return answer


def update_document(
    store: HistoryStore, run: int, since: Position, until: Position
) -> dict[str, Any]:
    """What the page must add to what it has: the same form, with the new periods alone.

    A page that slept for a week gets the newest of them, as many as it would show.
    """
    since = Position(*map(max, zip(astuple(since), astuple(_newest_events(until)), strict=True)))
    new = news(store, run, since, until)
    record, end = record_of(store, run), since.observations
    before = store.read_observations(run, Within(span=(end - 1, end)))
    moves = changed_places([*before, *new.observations])
    document = {
        "run": run_values(run, record),
        "series": columns(new.observations),
        "forecast": forecast_columns(new.decisions, record.foresight_s),
        "components": component_columns(new.observations),
        "newest": newest(new.observations),
        "moves": moves[-MOST_MOVES:],
        **_events(new),
    }
    answer: dict[str, Any] = plain(document)
    return answer


def why_document(store: HistoryStore, run: int, at_s: float | None) -> dict[str, Any]:
    """A decision at other numbers of executors, by the usual options of its policy."""
    moment = moment_of(store, run, at_s)
    found, slots = why(moment), moment.run.slots_per_executor
    there = moment.decision.current.processors
    answer: dict[str, Any] = plain(
        {
            "at_s": found.decision.at_s,
            "share": found.share,
            "max_latency_s": found.max_latency_s,
            "planned_rate_per_s": found.planned_rate_per_s,
            "notes": found.notes,
            "alternatives": [
                {
                    **vars(one),
                    "there": one.processors == there,
                    "goes_to": None if one.asks_for is None else -(-one.asks_for // slots),
                }
                for one in found.alternatives
            ],
        }
    )
    return answer


def newest(observations: Sequence[Observation]) -> Observation | None:
    """The last observation in full; its components and nodes are what the page draws."""
    return observations[-1] if observations else None


def _newest_events(now: Position) -> Position:
    """From where rows are read: a page shows no more of them, however long the run."""
    return Position(*(max(0, number - MOST_READ) for number in astuple(now)))


def _usual_range(store: HistoryStore, run: int, now: Position) -> Range:
    """All of a run, or the end of a long one."""
    first = store.read_observations(run, Within(span=(0, 1)))
    last = store.read_observations(run, Within(span=(now.observations - 1, now.observations)))
    if first and last and last[0].at_s - first[0].at_s > LONG_RUN_S:
        return Range(last[0].at_s - LONG_RUN_S)
    return Range()


def _events(new: News) -> dict[str, Any]:
    return {
        "decisions": [decision_values(d) for d in _worth_showing(new.decisions)],
        "shadows": [decision_values(d) for d in _worth_showing(new.shadows)],
        "wanted": wanted_columns(new.shadows),
        "others": [
            *(allocation_values(a) for a in new.allocations if a.moves or a.infeasible),
            *(admission_values(d) for d in new.admissions[-MOST_CHANGES:]),
            *(room_values(d) for d in new.room_decisions[-MOST_CHANGES:]),
        ],
        "actions": [action_values(a) for a in new.actions[-MOST_CHANGES:]],
        "failures": list(new.failures[-MOST_CHANGES:]),
    }


def _worth_showing(decisions: Sequence[DecisionRecord]) -> list[DecisionRecord]:
    """The newest of those that wanted a change, and fewer of those that did not."""
    changing = [d for d in decisions if changes(d)][-MOST_CHANGES:]
    unchanged = [d for d in decisions if not changes(d)][-MOST_UNCHANGED:]
    return sorted([*changing, *unchanged], key=lambda d: d.at_s)


def changes(decision: DecisionRecord) -> bool:
    """Whether anything else than the present was wanted."""
    now = decision.current
    return not (
        now.processors == decision.decision.plan.processors == decision.guarded.processors
        and decision.decision.infeasible is None
    )


def decision_values(record: DecisionRecord) -> dict[str, Any]:
    """A decision with its numbers and reasons."""
    return {
        "at_s": record.at_s,
        "policy": record.policy,
        "dry_run": record.dry_run,
        "shadow": record.shadow,
        "changes": changes(record),
        "processors": record.current.processors,
        "suggested": record.decision.plan.processors,
        "guarded": record.guarded.processors,
        "parallelism": {
            name: {
                "now": record.current.parallelism.get(name),
                "wanted": record.guarded.parallelism.get(name),
            }
            for name in {**record.current.parallelism, **record.guarded.parallelism}
        },
        "reasons": [*record.decision.reasons],
        "guard_reasons": [*record.guard_reasons],
        "infeasible": record.decision.infeasible,
        "foreseen_rate_per_s": record.foreseen_rate_per_s,
    }


def allocation_values(record: AllocationRecord) -> dict[str, Any]:
    """A placement as all decisions but those of scaling are shown: what, by whom, numbers, why."""
    moves = [f"{m.component} group {m.key_group} to {m.node}" for m in record.moves]
    numbers = {
        "load distance": [record.load_distance, record.planned_distance],
        "collocation": [record.collocation, record.planned_collocation],
        "bound": [record.bound],
    }
    return _event(
        record, "allocation", record.policy, numbers,
        what=f"{len(record.moves)} key groups move" if record.moves else "key groups stay",
        components=sorted({move.component for move in record.moves}), dry_run=record.dry_run,
        reasons=[*record.reasons, *([", ".join(moves)] if moves else [])],
    )  # fmt: skip


def admission_values(record: AdmissionRecord) -> dict[str, Any]:
    """Streams divided among lanes."""
    before, after = record.lanes_before, record.lanes_after
    lanes = f"lanes {before} → {after}" if before != after else f"lanes stay {after}"
    moved = f", {record.redirected} streams redirected" if record.redirected else ""
    numbers: dict[str, Sequence[float]] = {
        "streams": [record.streams],
        "rate": [record.rate_per_s],
        "fewest lanes possible": [record.lower_bound],
    }
    what = f"{record.source}: {lanes}{moved}"
    return _event(
        record, "admission", record.strategy, numbers, what=what, components=[record.source]
    )


def room_values(decision: RoomDecision) -> dict[str, Any]:
    """A decision that was taken elsewhere than in the loop."""
    shown = {name: value for name, value in decision.numbers.items() if not name.endswith("_at_s")}
    numbers = {name.replace("_", " "): [value] for name, value in shown.items()}
    return _event(decision, decision.room, decision.policy, numbers, what=decision.what)


def _event(
    made: AllocationRecord | AdmissionRecord | RoomDecision, kind: str, policy: str,
    numbers: Mapping[str, Sequence[float]], **more: Any,
) -> dict[str, Any]:  # fmt: skip
    values = {
        "at_s": made.at_s, "kind": kind, "policy": policy, "dry_run": False, "components": [],
        "numbers": numbers, "reasons": [*made.reasons], "infeasible": made.infeasible,
    }  # fmt: skip
    return values | more


def action_values(record: ActionRecord) -> dict[str, Any]:
    """What was done; other rooms' actions have other arguments, so each is shown by its text."""
    outcome = record.outcome
    return {
        "at_s": record.at_s,
        "action": outcome.action.NAME,
        "what": str(outcome.action),
        "done": outcome.done,
        "detail": outcome.detail,
        "took_s": outcome.took_s,
    }
