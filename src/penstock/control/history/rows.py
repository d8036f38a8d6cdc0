"""Observations and records as rows of the history, and back, without loss.

Numbers are made plain (a numpy integer would become bytes in SQLite); NaN becomes NULL and an
infinity inside JSON the text "inf", as neither database keeps them there.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
from sqlalchemy import RowMapping, Table

from penstock.control.actions import (
    Action,
    MigrationCost,
    Move,
    MoveKeyGroups,
    Outcome,
    SetExecutors,
    SetInterval,
    SetParallelism,
    SetRouteTasks,
    ShedLoad,
    UseVariants,
)
from penstock.control.history import tables as t
from penstock.control.records import (
    ActionRecord,
    AllocationRecord,
    DecisionRecord,
    FailureRecord,
    RunRecord,
)
from penstock.model.decision import Decision, RoomDecision, ScalingPlan
from penstock.model.observation import (
    AdmissionRecord,
    BatchObservation,
    ComponentObservation,
    KeyGroups,
    LaneObservation,
    LatencyObservation,
    NodeObservation,
    Observation,
    OperatorObservation,
    SourceObservation,
    StateObservation,
)  # fmt: skip
from penstock.model.plan_document import change_document, read_change

Row = RowMapping
Part = OperatorObservation | ComponentObservation | NodeObservation | StateObservation
Rows = list[tuple[Table, dict[str, Any]]]


def observation_rows(observation: Observation, run_id: int, seq: int) -> Rows:
    """The rows of one observation, parent first."""
    o = observation
    key = {"run_id": run_id, "seq": seq}
    parent = key | {
        "at_s": _number(o.at_s),
        "period_s": _number(o.period_s),
        "arrival_rate_per_s": _number(o.arrival_rate_per_s),
        "backlog_rows": _number(o.backlog_rows),
        "missing": list(o.missing),
        "sources": [_source(source) for source in o.sources],
    }
    parent |= _prefixed("latency", o.latency) | _prefixed("batch", o.batches)
    rows: Rows = [(t.observations, parent)]
    several: tuple[tuple[Table, Sequence[Part]], ...] = (
        (t.operators, o.operators),
        (t.components, o.components),
        (t.nodes, o.nodes),
        (t.state, o.state),
    )
    for table, parts in several:
        for position, part in enumerate(parts):
            rows.append((table, key | {"position": position} | _part(part)))
    rows += [(t.room_decisions, room_decision_row(d, run_id)) for d in o.decided]
    return rows


def _source(source: SourceObservation) -> dict[str, Any]:
    document = asdict(source)
    for part in (*document["lanes"], *document["decisions"]):
        part["rate_per_s"] = _json_numbers([part["rate_per_s"]])[0]
    return document


def read_admissions(row: Row) -> list[AdmissionRecord]:
    """The decisions of sources recorded in an observation."""
    return [record for document in row["sources"] for record in _read_source(document).decisions]


def _read_source(document: dict[str, Any]) -> SourceObservation:
    rates = [_read_json_number(part) for part in (*document["lanes"], *document["decisions"])]
    lanes = [LaneObservation(**part) for part in rates[: len(document["lanes"])]]
    decisions = [
        AdmissionRecord(**{**part, "reasons": tuple(part["reasons"])})
        for part in rates[len(lanes) :]
    ]
    parts = {"lanes": tuple(lanes), "decisions": tuple(decisions)}
    return SourceObservation(**{**document, **parts, "notes": tuple(document["notes"])})


def _read_json_number(part: dict[str, Any]) -> dict[str, Any]:
    rate = part["rate_per_s"]
    return {**part, "rate_per_s": math.nan if rate is None else float(rate)}


def room_decision_row(decision: RoomDecision, run_id: int) -> dict[str, Any]:
    """The row of a decision of another room; a plan is kept as data, and its text is not."""
    plan = decision.plan
    return {
        "run_id": run_id,
        "at_s": _number(decision.at_s),
        "room": decision.room,
        "policy": decision.policy,
        "what": _text(decision.what) if plan is None else "",
        "numbers": {name: _number(value) for name, value in decision.numbers.items()},
        "reasons": [_text(reason) for reason in decision.reasons],
        "infeasible": decision.infeasible,
        "plan": None if plan is None else change_document(plan),
    }


def read_room_decision(row: Row) -> RoomDecision:
    """The decision of its row; those of an older form have no plan, whatever they decided."""
    numbers = {name: math.nan if v is None else float(v) for name, v in row["numbers"].items()}
    reasons, document = tuple(row["reasons"]), row.get("plan")
    if document is None:
        return RoomDecision(
            row["at_s"], row["room"], row["policy"], row["what"], numbers, reasons,
            row["infeasible"],
        )  # fmt: skip
    plan = read_change(document, f"plan of a {row['room']} decision")
    return RoomDecision.of_plan(
        row["at_s"], row["room"], row["policy"], plan, numbers, reasons, row["infeasible"]
    )


def _prefixed(
    prefix: str, part: LatencyObservation | BatchObservation | None
) -> dict[str, float | None]:
    columns = [c.name for c in t.observations.c if c.name.startswith(prefix + "_")]
    if part is None:
        return dict.fromkeys(columns)
    values = asdict(part)
    return {c: _number(values[c.removeprefix(prefix + "_")]) for c in columns}


def _part(part: Part) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for name, value in vars(part).items():
        if isinstance(value, KeyGroups):
            values[name] = {
                "load_s": _json_numbers(value.load_s),
                "state_bytes": _json_numbers(value.state_bytes),
                "node": [str(node) for node in value.node],
            }
        elif isinstance(value, tuple):
            values[name] = list(value)
        elif value is None or isinstance(value, str | bool):
            values[name] = value
        else:
            values[name] = _number(value)
    return values


def read_observation(
    row: Row,
    operators: Sequence[Row],
    components: Sequence[Row],
    nodes: Sequence[Row],
    state: Sequence[Row],
) -> Observation:
    """The observation of its rows; the parts come in order of their position."""
    latency = batches = None
    if row["latency_count"] is not None:
        latency = LatencyObservation(
            count=row["latency_count"],
            **_floats(row, "mean_s", "p95_s", "max_s", "in_time_share", prefix="latency_"),
        )
    if row["batch_count"] is not None:
        batches = BatchObservation(
            count=row["batch_count"],
            **_floats(row, "mean_duration_s", "mean_overhead_s", "mean_rows", prefix="batch_"),
        )
    numbers = _floats(row, "at_s", "period_s", "arrival_rate_per_s", "backlog_rows")
    return Observation(
        at_s=numbers["at_s"],
        period_s=numbers["period_s"],
        arrival_rate_per_s=numbers["arrival_rate_per_s"],
        backlog_rows=numbers["backlog_rows"],
        operators=tuple(
            OperatorObservation(
                name=r["name"], **_floats(r, "arrival_rate_per_s", "emission_rate_per_s")
            )
            for r in operators
        ),
        components=tuple(map(_component, components)),
        nodes=tuple(
            NodeObservation(
                name=r["name"], slots=r["slots"], draining=r["draining"], **_floats(r, "busy_s")
            )
            for r in nodes
        ),
        latency=latency,
        batches=batches,
        routes=(),  # of the newest batch only, and of no use to a policy: not kept
        sources=tuple(map(_read_source, row["sources"])),
        missing=tuple(row["missing"]),
        state=tuple(StateObservation(r["name"], _key_groups(r["key_groups"])) for r in state),
    )


def _key_groups(document: dict[str, Any]) -> KeyGroups:
    return KeyGroups(
        load_s=_array(document["load_s"]),
        state_bytes=_array(document["state_bytes"]),
        node=np.array(document["node"], dtype=np.str_),
    )


def _component(row: Row) -> ComponentObservation:
    groups = row["key_groups"]
    return ComponentObservation(
        name=row["name"],
        operators=tuple(row["operators"]),
        parallelism=row["parallelism"],
        tasks=row["tasks"],
        **_floats(
            row, "arrival_rate_per_s", "service_time_s", "busy_s", "backlog_rows",
            "arrival_scv", "service_scv",
        ),
        key_groups=None if groups is None else _key_groups(groups),
    )  # fmt: skip


def read_run(row: Row) -> RunRecord:
    """The run of its row."""
    values = {name: value for name, value in row.items() if name != "id"}
    edges = tuple((upstream, downstream) for upstream, downstream in row["edges"])
    return RunRecord(**values | {"edges": edges})


def decision_row(record: DecisionRecord, run_id: int) -> dict[str, Any]:
    """The row of a decision."""
    row: dict[str, Any] = {
        "run_id": run_id,
        "at_s": _number(record.at_s),
        "policy": record.policy,
        "reasons": list(record.decision.reasons),
        "guard_reasons": list(record.guard_reasons),
        "infeasible": record.decision.infeasible,
        "dry_run": bool(record.dry_run),
        "shadow": bool(record.shadow),
        "foreseen_rate_per_s": record.foreseen_rate_per_s,
    }
    plans = {
        "current": record.current, "suggested": record.decision.plan, "guarded": record.guarded
    }  # fmt: skip
    for name, plan in plans.items():
        row[f"{name}_processors"] = int(plan.processors)
        row[f"{name}_parallelism"] = {c: int(n) for c, n in plan.parallelism.items()}
    return row


def read_decision(row: Row) -> DecisionRecord:
    """The decision of its row."""
    current, suggested, guarded = (
        ScalingPlan(row[f"{name}_parallelism"], row[f"{name}_processors"])
        for name in ("current", "suggested", "guarded")
    )
    return DecisionRecord(
        at_s=row["at_s"],
        policy=row["policy"],
        current=current,
        decision=Decision(suggested, tuple(row["reasons"]), row["infeasible"]),
        guarded=guarded,
        guard_reasons=tuple(row["guard_reasons"]),
        dry_run=row["dry_run"],
        shadow=row["shadow"],
        foreseen_rate_per_s=row["foreseen_rate_per_s"],
    )


def allocation_row(record: AllocationRecord, run_id: int) -> dict[str, Any]:
    """The row of an allocation."""
    row = {name: value for name, value in vars(record).items() if name != "moves"}
    for name, value in row.items():
        if isinstance(value, tuple):
            row[name] = list(value)
        elif isinstance(value, float):
            row[name] = _number(value)
    return row | {"run_id": run_id, "moves": _moves(record.moves)}


def read_allocation(row: Row) -> AllocationRecord:
    """The allocation of its row."""
    return AllocationRecord(
        at_s=row["at_s"],
        policy=row["policy"],
        moves=tuple(Move(*move) for move in row["moves"]),
        **_floats(
            row, "load_distance", "planned_distance", "bound", "collocation",
            "planned_collocation",
        ),
        leaving=tuple(row["leaving"]),
        left_on_leaving=row["left_on_leaving"],
        holds_scaling=row["holds_scaling"],
        reasons=tuple(row["reasons"]),
        infeasible=row["infeasible"],
        dry_run=row["dry_run"],
    )  # fmt: skip


def _moves(moves: Iterable[Move]) -> list[list[Any]]:
    return [[move.component, int(move.key_group), move.node] for move in moves]


def _arguments(outcome: Outcome) -> dict[str, Any]:
    action = outcome.action
    if isinstance(action, MoveKeyGroups):
        cost = outcome.migration
        measured = None if cost is None else {k: _number(v) for k, v in vars(cost).items()}
        return {"moves": _moves(action.moves), "measured": measured}
    if isinstance(action, SetParallelism):
        return {"parallelism": {name: int(count) for name, count in action.parallelism.items()}}
    if isinstance(action, UseVariants):
        return {"operators": list(action.operators)}
    if isinstance(action, ShedLoad):
        return {"share": float(action.share)}
    if isinstance(action, SetInterval):
        return {"seconds": float(action.seconds)}
    if isinstance(action, SetRouteTasks):
        return {"tasks": {source: int(tasks) for source, tasks in action.tasks.items()}}
    return {"total": int(action.total), "leaving": list(action.leaving)}


def action_row(record: ActionRecord, run_id: int) -> dict[str, Any]:
    """The row of an action."""
    outcome = record.outcome
    return {
        "run_id": run_id,
        "at_s": _number(record.at_s),
        "action": outcome.action.NAME,
        "arguments": _arguments(outcome),
        "done": bool(outcome.done),
        "detail": _text(outcome.detail),
        "took_s": _number(outcome.took_s),
    }


def read_action(row: Row) -> ActionRecord:
    """The action of its row."""
    given, migration = row["arguments"], None
    action: Action
    if row["action"] == MoveKeyGroups.NAME:
        action = MoveKeyGroups(tuple(Move(*move) for move in given["moves"]))
        if given["measured"] is not None:
            cost = _floats(given["measured"], "state_bytes", "load_s", "delay_s")
            migration = MigrationCost(int(given["measured"]["key_groups"]), **cost)
    elif row["action"] == SetParallelism.NAME:
        action = SetParallelism(given["parallelism"])
    elif row["action"] == UseVariants.NAME:
        action = UseVariants(tuple(given["operators"]))
    elif row["action"] == ShedLoad.NAME:
        action = ShedLoad(given["share"])
    elif row["action"] == SetInterval.NAME:
        action = SetInterval(given["seconds"])
    elif row["action"] == SetRouteTasks.NAME:
        action = SetRouteTasks(given["tasks"])
    else:
        action = SetExecutors(given["total"], tuple(given.get("leaving", ())))
    took = _floats(row, "took_s")
    outcome = Outcome(action, row["done"], row["detail"], **took, migration=migration)
    return ActionRecord(row["at_s"], outcome)


def failure_row(record: FailureRecord, run_id: int) -> dict[str, Any]:
    """The row of a failure."""
    return {
        "run_id": run_id,
        "at_s": _number(record.at_s),
        "stage": record.stage,
        "message": _text(record.message),
    }


def read_failure(row: Row) -> FailureRecord:
    """The failure of its row."""
    return FailureRecord(row["at_s"], row["stage"], row["message"])


def _text(value: str) -> str:
    """PostgreSQL refuses NUL in text; messages from outside may hold one."""
    return value.replace("\0", "\\0")


def _number(value: Any) -> float | None:
    if isinstance(value, int | np.integer):
        return int(value)
    return None if math.isnan(value) else float(value)


def _floats(row: Row | Mapping[str, Any], *names: str, prefix: str = "") -> dict[str, float]:
    found = {name: row[prefix + name] for name in names}
    return {name: math.nan if v is None else float(v) for name, v in found.items()}


def _json_numbers(values: Iterable[float]) -> list[float | str | None]:
    return [
        None if math.isnan(v) else float(v) if math.isfinite(v) else str(float(v)) for v in values
    ]


def _array(values: Iterable[float | str | None]) -> np.ndarray[Any, np.dtype[np.float64]]:
    return np.array([math.nan if v is None else float(v) for v in values], dtype=np.float64)
