"""Observations and records as rows of the history, and back, without loss.

A column is named after its field. Numbers are made plain (a numpy integer would become bytes in
SQLite); NaN becomes NULL and an infinity inside JSON the text "inf", as neither database keeps
them there.
"""

import math
from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any, TypeVar, get_args, get_origin

import numpy as np
from cattrs import Converter
from sqlalchemy import RowMapping, Table

from penstock.control.actions import Move, MoveKeyGroups
from penstock.control.history import tables as t
from penstock.control.records import ActionRecord, DecisionRecord
from penstock.model.decision import RoomDecision
from penstock.model.observation import (
    AdmissionRecord,
    BatchObservation,
    LatencyObservation,
    Observation,
    SourceObservation,
)
from penstock.model.plan_document import Fusion, Order, PlanChange, change_document, read_change

Row = RowMapping
Rows = list[tuple[Table, dict[str, Any]]]
Record = TypeVar("Record")

PARTS = {"operators": t.operators, "components": t.components, "nodes": t.nodes, "state": t.state}
# What an observation has one of or none: its field, the prefix of its columns, and theirs.
_FLAT = (("latency", "latency_", LatencyObservation), ("batches", "batch_", BatchObservation))
_PLANS = ("current", "suggested", "guarded")


def _column_number(value: float) -> float | None:
    if isinstance(value, int | np.integer):
        return int(value)
    return None if math.isnan(value) else float(value)


def _json_number(value: float) -> float | str | None:
    plain = _column_number(value)
    return plain if plain is None or math.isfinite(plain) else str(plain)


def _plain_values(found: Any) -> list[Any]:
    """The values of an array: at once, as there may be one for each of very many key groups."""
    if found.dtype.kind in "iuU":
        return list(found.tolist())
    if found.dtype.kind != "f":
        return [v if isinstance(v, str) else _json_number(v) for v in found.tolist()]
    odd = np.flatnonzero(~np.isfinite(found))
    plain = list(found.tolist())
    for index in odd.tolist():
        plain[index] = _json_number(plain[index])
    return plain


def _is_array(kind: Any) -> bool:
    return kind is np.ndarray or get_origin(kind) is np.ndarray


def _read_array(values: list[Any], kind: Any) -> Any:
    (scalar,) = get_args(get_args(kind)[1])  # of NDArray[scalar]
    return np.array([math.nan if value is None else value for value in values], dtype=scalar)


def _read_plan(document: Any, _: Any) -> PlanChange | None:
    return None if document is None else read_change(document, "plan of a decision")


def _converter(number: Any) -> Converter:
    made = Converter(detailed_validation=False, unstruct_collection_overrides={tuple: list})
    made.register_unstructure_hook(float, number)
    made.register_unstructure_hook(int, int)
    made.register_unstructure_hook(bool, bool)
    # PostgreSQL refuses NUL in text; messages from outside may hold one.
    made.register_unstructure_hook(str, lambda text: str(text).replace("\0", "\\0"))
    made.register_unstructure_hook_func(_is_array, _plain_values)
    made.register_unstructure_hook(
        Move, lambda move: [move.component, int(move.key_group), move.node]
    )
    for change in (Fusion, Order):
        made.register_unstructure_hook(change, change_document)
    made.register_structure_hook(
        float, lambda found, _: math.nan if found is None else float(found)
    )
    made.register_structure_hook(Move, lambda found, _: Move(*found))
    made.register_structure_hook_func(_is_array, _read_array)
    made.register_structure_hook_func(lambda kind: kind == PlanChange | None, _read_plan)
    return made


_columns, _json = _converter(_column_number), _converter(_json_number)


def record_row(record: object, run_id: int) -> dict[str, Any]:
    """The row of a record whose fields are the columns."""
    return {"run_id": run_id, **_columns.unstructure(record)}


def read_record(row: Row | Mapping[str, Any], kind: type[Record]) -> Record:
    """The record of such a row."""
    return _columns.structure(row, kind)


def observation_rows(observation: Observation, run_id: int, seq: int) -> Rows:
    """The rows of one observation, parent first."""
    o, key = observation, {"run_id": run_id, "seq": seq}
    parent = {**key, "missing": list(o.missing), "sources": _json.unstructure(o.sources)}
    parent["part_of_cluster"] = o.part_of_cluster
    parent["sinks"] = _json.unstructure(o.sinks) or None
    for name in ("at_s", "period_s", "arrival_rate_per_s", "backlog_rows", "rate_age_s"):
        parent[name] = _column_number(getattr(o, name))
    for name, prefix, kind in _FLAT:
        values = _columns.unstructure(getattr(o, name)) or {}
        parent |= {prefix + field.name: values.get(field.name) for field in fields(kind)}
    rows: Rows = [(t.observations, parent)]
    for name, table in PARTS.items():
        for position, values in enumerate(_columns.unstructure(getattr(o, name))):
            rows.append((table, {**key, "position": position, **values}))
    return rows + [(t.room_decisions, room_decision_row(made, run_id)) for made in o.decided]


def read_observation(row: Row, parts: Mapping[str, list[Row]]) -> Observation:
    """The observation of its row and those of its parts, in order of their position.

    Routes are of the newest batch only, and of no use to a policy: they are not kept.
    """
    whole: dict[str, Any] = {**row, **parts, "sinks": row.get("sinks") or []}
    for name, prefix, kind in _FLAT:
        values = {field.name: row.get(prefix + field.name) for field in fields(kind)}
        whole[name] = None if values["count"] is None else values
    return read_record(whole, Observation)


def read_admissions(row: Row) -> list[AdmissionRecord]:
    """The decisions of sources recorded in an observation."""
    sources = _columns.structure(row["sources"], tuple[SourceObservation, ...])
    return [record for source in sources for record in source.decisions]


def room_decision_row(decision: RoomDecision, run_id: int) -> dict[str, Any]:
    """The row of a decision of another room; a plan is kept as data, and its text is not."""
    row = record_row(decision, run_id) | {"numbers": _json.unstructure(dict(decision.numbers))}
    return row if decision.plan is None else row | {"what": ""}


def read_room_decision(row: Row) -> RoomDecision:
    """The decision of its row; those of an older form have no plan, whatever they decided."""
    found = read_record(row, RoomDecision)
    return found if found.plan is None else replace(found, what=str(found.plan))


def decision_row(record: DecisionRecord, run_id: int) -> dict[str, Any]:
    """The row of a decision."""
    row = record_row(record, run_id)
    row |= row.pop("decision")
    row["numbers"] = _json.unstructure(dict(record.decision.numbers))
    row["suggested"] = row.pop("plan")
    del row["expected_s"]  # of this moment only
    for name in _PLANS:
        row |= {f"{name}_{what}": value for what, value in row.pop(name).items()}
    return row


def read_decision(row: Row) -> DecisionRecord:
    """The decision of its row."""
    current, suggested, guarded = (
        {what: row[f"{name}_{what}"] for what in ("parallelism", "processors")} for name in _PLANS
    )
    decision = {**row, "plan": suggested, "numbers": row.get("numbers") or {}}
    whole = {**row, "current": current, "decision": decision, "guarded": guarded}
    return read_record(whole, DecisionRecord)


def action_row(record: ActionRecord, run_id: int) -> dict[str, Any]:
    """The row of an action; its arguments are the fields of its class, and what moves cost."""
    row = record_row(record, run_id)
    row |= row.pop("outcome")
    action, measured = record.outcome.action, row.pop("migration")
    cost = {"measured": measured} if isinstance(action, MoveKeyGroups) else {}
    return row | {"action": action.NAME, "arguments": {**row["action"], **cost}}


def read_action(row: Row) -> ActionRecord:
    """The action of its row: no two classes of actions have a field in common."""
    given = row["arguments"]
    outcome = {**row, "action": given, "migration": given.get("measured")}
    return read_record({**row, "outcome": outcome}, ActionRecord)
