"""A run period by period from a JSON document, for policies that decide on what a run has shown.

Batches are not in the document: what they took follows from the work of the rows, the processors
and the fixed cost of a batch, as in `model/batch_overhead.py`. The run is taken to be warm.
"""

import math
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock.documents import Document, Schema
from penstock.errors import InvalidInput
from penstock.model.batch_overhead import USUAL_OVERHEAD
from penstock.model.decision import USUAL_SHARE, ActPrice, Limits, ScalingPlan
from penstock.model.observation import (
    BatchObservation,
    ComponentObservation,
    LatencyObservation,
    NodeObservation,
    Observation,
)
from penstock.scaling.policies.policy import ScalingContext

Floats = NDArray[np.float64]

MOST_PERIODS = 10_000
MOST_SLOTS = 10_000
MOST_AHEAD = 200  # periods until an executor serves
_SERIES = ("external_rate", "backlog", "in_time_share", "processors")


def _number(least: float, most: float, description: str, **more: Any) -> dict[str, Any]:
    return {
        "type": "number", "minimum": least, "maximum": most, "description": description, **more,
    }  # fmt: skip


def _series(one: dict[str, Any]) -> dict[str, Any]:
    """One value for all periods, or one for each."""
    told: dict[str, Any] = {k: one[k] for k in ("description", "default") if k in one}
    items = {key: value for key, value in one.items() if key not in told}
    many = {"type": "array", "minItems": 1, "maxItems": MOST_PERIODS, "items": items}
    return {**told, "anyOf": [items, many]}


_COUNT = {"type": "integer", "minimum": 1, "maximum": MOST_SLOTS}
_RATE = {"type": "number", "minimum": 0, "maximum": 1e12}


def observed_form(policy: str, text: str) -> Schema:
    """The form of a policy that decides on the periods of a run with shared processors."""
    operator = {
        "name": {"type": "string", "minLength": 1},
        "service_rate": _number(1e-9, 1e12, "rows a second one processor can serve"),
        "visits": _number(0, 1e6, "rows that come to it for each that enters", default=1),
    }
    fields = {
        "policy": {"const": policy},
        "period_s": _number(0.1, 3600, "time between two measurements"),
        "max_latency_s": _number(1e-3, 1e6, "the bound of the promise"),
        "share": _number(0.5, 0.9999, "of the results that must keep it", default=USUAL_SHARE),
        "external_rate": {
            "type": "array", "minItems": 1, "maxItems": MOST_PERIODS, "items": _RATE,
            "description": "rows a second that entered in each period, oldest first",
        },
        "processors": _series({**_COUNT, "description": "that served, now or in each period"}),
        "slots": {**_COUNT, "default": 1, "description": "processors of one executor"},
        "min_processors": {**_COUNT, "description": "those of one executor when left out"},
        "max_processors": _COUNT,
        "operators": {
            "type": "array", "minItems": 1, "maxItems": 1000,
            "items": {
                "type": "object", "properties": operator, "required": ["name", "service_rate"],
                "additionalProperties": False,
            },
        },
        "backlog": _series(_number(0, 1e15, "rows that waited at the end of a period", default=0)),
        "in_time_share": _series(
            _number(0, 1, "of the results of a period; what its batches would give when left out")
        ),
        "batch_overhead_s": _number(
            1e-6, 1e6, "fixed cost of a micro-batch", default=USUAL_OVERHEAD.fixed_s
        ),
        "batch_interval_s": _number(0, 3600, "between starts; 0: back to back", default=0),
        "start_up_s": _number(0.1, 3600, "until an executor serves; 20 s when left out"),
        "pause_s": _number(0, 3600, "by which a change makes batches longer", default=0),
        "options": {
            "type": "object", "default": {},
            "description": f"of the policy: penstock docs options, {policy}",
        },
    }  # fmt: skip
    return {
        "type": "object", "properties": fields, "description": text,
        "required": [
            "policy", "period_s", "max_latency_s", "external_rate", "processors", "max_processors",
            "operators",
        ],
        "additionalProperties": False,
    }  # fmt: skip


PROMISE = observed_form(
    "promise", "The fewest executors that keep a share of the results within the bound."
)
DS2 = observed_form(
    "ds2", "Processors for the offered rate at a target utilisation, and to work off a backlog."
)


def context_of(document: Document, window_periods: int) -> ScalingContext:
    """What a policy would be shown at the end of the newest period."""
    columns = _columns(document)
    window = _window(document, {name: one[-window_periods:] for name, one in columns.items()})
    processors, slots = int(columns["processors"][-1]), int(document.get("slots", 1))
    least, most = int(document.get("min_processors", slots)), int(document["max_processors"])
    if not least <= most:
        raise InvalidInput(f"min_processors is {least}; max_processors is {most}.")
    if document.get("start_up_s", 0) > MOST_AHEAD * document["period_s"]:
        raise InvalidInput(
            f"start_up_s is {document['start_up_s']:g}; advice looks {MOST_AHEAD} periods ahead."
        )
    for count in document["processors"], least, most:
        counts = count if isinstance(count, list) else [count]
        if any(one % slots for one in counts) and slots > 1:
            raise InvalidInput(f"slots is {slots}; numbers of processors must be multiples of it.")
    return ScalingContext(
        window,
        ScalingPlan({one["name"]: processors for one in document["operators"]}, processors),
        Limits(least, most, float(document["max_latency_s"]), _share(document)),
        act_price=ActPrice(document.get("start_up_s"), float(document.get("pause_s", 0.0))),
    )


def _share(document: Document) -> float:
    return float(document.get("share", USUAL_SHARE))


def _columns(document: Document) -> dict[str, Floats]:
    """The series, each as long as that of the rate; NaN where one is left out."""
    length = len(document["external_rate"])
    found = {}
    for name in _SERIES:
        given = document.get(name, 0.0 if name == "backlog" else math.nan)
        if isinstance(given, list) and len(given) != length:
            raise InvalidInput(f"{name} has {len(given)} measurements; external_rate has {length}.")
        found[name] = np.broadcast_to(np.asarray(given, dtype=np.float64), length)
    return found


def _window(document: Document, columns: dict[str, Floats]) -> tuple[Observation, ...]:
    names = ("external_rate", "processors", "backlog", "in_time_share")
    rows = zip(*(columns[name].tolist() for name in names), strict=True)
    period_s = float(document["period_s"])
    seen = [
        _observation(document, (number + 1) * period_s, rate, int(count), backlog, in_time)
        for number, (rate, count, backlog, in_time) in enumerate(rows)
    ]
    return (_before(seen[0]), *seen)


def _observation(
    document: Document, at_s: float, rate: float, processors: int, backlog: float, in_time: float
) -> Observation:
    period_s = float(document["period_s"])
    components = _components(document, rate, processors)
    load = sum(one.arrival_rate_per_s * one.service_time_s for one in components)
    batches, cycle_s = _batches(document, load, processors, rate)
    batch_s, bound_s = batches.mean_duration_s, float(document["max_latency_s"])
    if math.isnan(in_time):
        in_time = min(1.0, max(0.0, (bound_s - batch_s) / cycle_s))
    latency = LatencyObservation(
        max(1, round(rate * period_s)), batch_s + 0.5 * cycle_s, batch_s + 0.95 * cycle_s,
        batch_s + cycle_s, in_time, batch_s + _share(document) * cycle_s,
    )  # fmt: skip
    return Observation(
        at_s, period_s, rate, backlog, components=components,
        nodes=_nodes(processors, int(document.get("slots", 1))), latency=latency, batches=batches,
    )  # fmt: skip


def _components(
    document: Document, rate: float, processors: int
) -> tuple[ComponentObservation, ...]:
    period_s = float(document["period_s"])
    found = []
    for one in document["operators"]:
        arrives, service_s = rate * float(one.get("visits", 1)), 1 / float(one["service_rate"])
        busy_s = min(arrives * service_s, processors) * period_s
        found.append(
            ComponentObservation(
                one["name"], (one["name"],), arrives, service_s, processors, busy_s
            )
        )
    return tuple(found)


def _batches(
    document: Document, load: float, processors: int, rate: float
) -> tuple[BatchObservation, float]:
    """Those of a period, and how long it is from the start of one to the next.

    Where rows pile up it is not known how long they took: long, and full of rows.
    """
    own_s = float(document.get("batch_overhead_s", USUAL_OVERHEAD.fixed_s))
    interval_s, period_s = float(document.get("batch_interval_s", 0.0)), float(document["period_s"])
    used = load / processors
    batch_s = own_s + used * interval_s
    if batch_s > interval_s:
        longest_s = max(10 * own_s, 2 * float(document["max_latency_s"]), period_s)
        batch_s = min(own_s / (1 - used), longest_s) if used < 1 else longest_s
    cycle_s = max(batch_s, interval_s)
    rows = (batch_s - own_s) * processors * rate / load if load > 0 else rate * cycle_s
    return BatchObservation(max(1, round(period_s / cycle_s)), batch_s, own_s, rows), cycle_s


@lru_cache(maxsize=64)
def _nodes(processors: int, slots: int) -> tuple[NodeObservation, ...]:
    return tuple(NodeObservation(str(one), slots, math.nan) for one in range(processors // slots))


def _before(first: Observation) -> Observation:
    """The first results of the run, so long ago that its start-up is over."""
    assert first.latency is not None
    at_s = first.at_s - first.period_s - first.latency.p95_s
    return replace(
        first, at_s=at_s, arrival_rate_per_s=math.nan, components=(), batches=None,
        latency=replace(first.latency, count=1, in_time_share=1.0),
    )  # fmt: skip
