"""Windows of measurements from a JSON document, for `autoscale` and `autoscale_plus`."""

from typing import Any

import numpy as np

from penstock.documents import Document
from penstock.errors import InvalidInput
from penstock.scaling.documents.forms import MOST_PROCESSORS
from penstock.scaling.policies.autoscale_plus import usable_cpu
from penstock.scaling.windows import OperatorWindows


def windows_of(document: Document, alpha: float) -> OperatorWindows:
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
    return OperatorWindows(
        names=names,
        upstreams=tuple(_upstreams(operator, names) for operator in operators),
        duration_s=float(document["period_s"]) * length,
        received_rows=np.array([o["received"] for o in operators], dtype=np.float64),
        service_time_s=np.array(
            [np.broadcast_to(o["latency_s"], length) for o in operators], dtype=np.float64
        ),
        pending_rows=np.array([o.get("pending", 0.0) for o in operators], dtype=np.float64),
        selectivity=np.array([_selectivity(o) for o in operators]),
        parallelism=np.array([o["parallelism"] for o in operators], dtype=np.int64),
        max_parallelism=np.array(
            [o.get("max_parallelism", MOST_PROCESSORS) for o in operators], dtype=np.int64
        ),
        known=(True,) * len(operators),
        usable_cpu=np.array([_usable(document, o, alpha) for o in operators]),
    )


def _upstreams(operator: dict[str, Any], names: tuple[str, ...]) -> tuple[int, ...]:
    for upstream in operator.get("upstreams", ()):
        if upstream not in names:
            raise InvalidInput(
                f"operator {operator['name']!r}: upstream {upstream!r} is unknown; known: "
                f"{', '.join(names)}."
            )
    return tuple(sorted({names.index(upstream) for upstream in operator.get("upstreams", ())}))


def _selectivity(operator: dict[str, Any]) -> float:
    """Rows out for each row processed; one where it is not said."""
    processed = float(sum(operator.get("processed", operator["received"])))
    if "emitted" not in operator or not processed > 0:
        return 1.0
    return min(1e9, float(sum(operator["emitted"])) / processed)


def _usable(document: Document, operator: dict[str, Any], alpha: float) -> float:
    cpu = operator.get("cpu")
    if cpu is None:
        return 1.0
    reserved = cpu.get("reserved", document.get("cpu_reservation", 1.0))
    return usable_cpu(float(cpu["used"]), float(reserved), cpu["others_used"], alpha)
