"""Windows of measurements from a JSON document, for `autoscale` and `autoscale_plus`."""

import math
from typing import Any

import numpy as np

from penstock.documents import Document
from penstock.errors import InvalidInput
from penstock.model.observation import TaskCpu
from penstock.scaling.documents.forms import MOST_PROCESSORS
from penstock.scaling.windows import OperatorWindows


def windows_of(document: Document) -> OperatorWindows:
    """The operators' windows; series of unequal length are refused."""
    operators = document["operators"]
    names = tuple(operator["name"] for operator in operators)
    length = len(operators[0]["received"])
    for operator in operators:
        for field in ("received", "processed", "emitted", "latency_s"):
            series = operator.get(field)
            if isinstance(series, list) and len(series) != length:
                raise InvalidInput(
                    f"operator {operator['name']!r}: {field} has {len(series)} measurements; all "
                    f"series must have {length}."
                )
    places = {name: place for place, name in enumerate(names)}
    upstreams = tuple(_upstreams(operator, places) for operator in operators)
    return OperatorWindows(
        names=names,
        upstreams=upstreams,
        duration_s=float(document["period_s"]) * length,
        received_rows=np.array([o["received"] for o in operators], dtype=np.float64),
        service_time_s=np.array(
            [np.broadcast_to(_latency_s(document, o), length) for o in operators], dtype=np.float64
        ),
        pending_rows=np.array([o.get("pending", 0.0) for o in operators], dtype=np.float64),
        selectivity=_sent_per_row(operators, upstreams),
        parallelism=np.array([o["parallelism"] for o in operators], dtype=np.int64),
        max_parallelism=np.array(
            [o.get("max_parallelism", MOST_PROCESSORS) for o in operators], dtype=np.int64
        ),
        known=(True,) * len(operators),
        cpu=tuple(_task_cpu(operator) for operator in operators),
        reserved_cpu=np.array([_reserved(operator) for operator in operators]),
    )


def _shares(operator: dict[str, Any]) -> dict[str, float]:
    """The share of each upstream's rows that comes to an operator; a bare name sends all."""
    shares: dict[str, float] = {}
    for upstream in operator.get("upstreams", ()):
        whole = isinstance(upstream, str)
        name = upstream if whole else upstream["name"]
        if name in shares:
            raise InvalidInput(f"operator {operator['name']!r}: upstream {name!r} is named twice.")
        shares[name] = 1.0 if whole else float(upstream["share"])
    return shares


def _upstreams(operator: dict[str, Any], places: dict[str, int]) -> tuple[int, ...]:
    shares = _shares(operator)
    for upstream in shares:
        if upstream not in places:
            raise InvalidInput(
                f"operator {operator['name']!r}: upstream {upstream!r} is unknown; known: "
                f"{', '.join(places)}."
            )
    return tuple(sorted(places[upstream] for upstream in shares))


def _sent_per_row(
    operators: list[dict[str, Any]], upstreams: tuple[tuple[int, ...], ...]
) -> tuple[tuple[float, ...], ...]:
    """Rows along each edge for each row its upstream processed."""
    emitted = [_emitted_per_row(operator) for operator in operators]
    names = [operator["name"] for operator in operators]
    found = []
    for operator, places in zip(operators, upstreams, strict=True):
        shares = _shares(operator)
        found.append(tuple(emitted[place] * shares[names[place]] for place in places))
    return tuple(found)


def _emitted_per_row(operator: dict[str, Any]) -> float:
    """Rows out for each row processed; one where it is not said."""
    processed = float(sum(operator.get("processed", operator["received"])))
    if "emitted" not in operator or not processed > 0:
        return 1.0
    return min(1e9, float(sum(operator["emitted"])) / processed)


def _latency_s(document: Document, operator: dict[str, Any]) -> float | list[float]:
    """As given; of tasks, AUTOSCALE takes the slowest (ch. 5 s. 2.1) and AUTOSCALE+ the mean."""
    if ("latency_s" in operator) == ("task_latency_s" in operator):
        raise InvalidInput(
            f"operator {operator['name']!r} needs one of latency_s and task_latency_s."
        )
    if "latency_s" in operator:
        given: float | list[float] = operator["latency_s"]
        return given
    tasks = operator["task_latency_s"]
    return float(max(tasks) if document["policy"] == "autoscale" else sum(tasks) / len(tasks))


def _task_cpu(operator: dict[str, Any]) -> tuple[TaskCpu, ...]:
    """The CPUs of its tasks: one that speaks for all, or one for each."""
    given = operator.get("cpu", [])
    tasks = [given] if isinstance(given, dict) else given
    return tuple(TaskCpu(float(cpu["used"]), tuple(cpu["others_used"])) for cpu in tasks)


def _reserved(operator: dict[str, Any]) -> float:
    cpu = operator.get("cpu")
    within: float = cpu.get("reserved", math.nan) if isinstance(cpu, dict) else math.nan
    reserved: float = operator.get("cpu_reservation", within)
    return reserved
