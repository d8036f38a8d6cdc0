"""`penstock advise scaling` for the policy `drs`."""

import math
from typing import Any

import numpy as np

from penstock.documents import Document
from penstock.errors import InvalidInput
from penstock.model.batch_overhead import BatchOverhead
from penstock.scaling.documents.forms import MOST_PROCESSORS
from penstock.scaling.models.heterogeneous import assign_by_speed, fewest_by_speed
from penstock.scaling.models.jackson import GIGK, MMK
from penstock.scaling.models.microbatch import Microbatch
from penstock.scaling.models.network import Allocation, LatencyModel, Network, network
from penstock.scaling.models.traffic import arrival_rates


def advise_drs(document: Document) -> dict[str, Any]:
    """The best split of so many processors, or the fewest for a bound."""
    model = _model(document)
    if not {"max_processors", "max_latency_s", "speeds"} & set(document):
        raise InvalidInput("the document lacks max_processors or max_latency_s; give one of them.")
    net = _network(document)
    if "speeds" in document:
        return _by_speed(document, net, model)
    most = int(document.get("max_processors", MOST_PROCESSORS))
    if "max_latency_s" in document:
        bound = float(document["max_latency_s"])
        found = model.minimum(net, bound, most)
    else:
        bound = math.inf
        found = model.assign(net, most)
    if found.infeasible is None:
        return _answer(document, net, model, found)
    return _refusal(net, model, found, bound, most)


def _refusal(
    net: Network, model: LatencyModel, found: Allocation, bound: float, most: int
) -> dict[str, Any]:
    answer: dict[str, Any] = {"infeasible": found.infeasible}
    if math.isfinite(found.latency_s):
        answer["best_latency_s"] = found.latency_s
    if found.least_processors is not None:
        answer["least_processors"] = found.least_processors
    if math.isfinite(bound) and most < MOST_PROCESSORS:
        unlimited = model.minimum(net, bound, MOST_PROCESSORS)
        if unlimited.infeasible is None:
            answer["least_processors"] = unlimited.processors
    return answer


def _answer(
    document: Document, net: Network, model: LatencyModel, found: Allocation
) -> dict[str, Any]:
    together = model.name == "microbatch"
    loads = net.loads
    reasons = []
    for operator, count, load in zip(
        document["operators"], found.parallelism.tolist(), loads.tolist(), strict=True
    ):
        use = (float(loads.sum()) if together else load) / count
        before = f"{operator['parallelism']} -> " if "parallelism" in operator else ""
        reasons.append(
            f"{operator['name']}: {before}{count}, load {load:.4g}, utilisation {use:.3g}"
        )
    reasons.append(
        f"{model.name} expects a mean latency of {found.latency_s:.4g} s "
        f"with {found.processors} processors"
    )
    return {
        "parallelism": dict(found.named(net)),
        "processors": found.processors,
        "expected_latency_s": found.latency_s,
        "reasons": reasons,
    }


def _by_speed(document: Document, net: Network, model: LatencyModel) -> dict[str, Any]:
    if model.name == "microbatch":
        raise InvalidInput("speeds goes with the models mmk and gigk, not with microbatch.")
    given, general = document["speeds"], model.name == "gigk"
    fastest = sorted(range(len(given)), key=lambda place: (-given[place], place))
    fastest = fastest[: int(document.get("max_processors", len(given)))]
    speeds = [float(given[place]) for place in fastest]
    if "max_latency_s" in document:
        found = fewest_by_speed(net, speeds, float(document["max_latency_s"]), general)
    else:
        found = assign_by_speed(net, speeds, general)
    if found.infeasible:
        best = {"best_latency_s": found.latency_s} if math.isfinite(found.latency_s) else {}
        return {"infeasible": found.infeasible, **best}
    held = {
        name: [fastest[place] for place in places]
        for name, places in zip(net.names, found.processors, strict=True)
    }
    return {
        "parallelism": {name: len(places) for name, places in held.items()},
        "processors": sum(map(len, held.values())),
        "expected_latency_s": found.latency_s,
        "assignment": held,
        "reasons": [
            f"{name}: {len(places)} processors of speeds "
            + ", ".join(f"{given[place]:g}" for place in places[:8])
            + (", ..." if len(places) > 8 else "")
            for name, places in held.items()
        ],
    }


def _model(document: Document) -> LatencyModel:
    name = document.get("model", "mmk")
    if name != "microbatch":
        return GIGK if name == "gigk" else MMK
    overhead = document.get("batch_overhead_s")
    if overhead is None:
        raise InvalidInput("the document lacks batch_overhead_s; the model microbatch needs it.")
    if isinstance(overhead, dict):
        fixed, growth = overhead["fixed"], overhead.get("per_processor", 0.0)
        return Microbatch(BatchOverhead(float(fixed), float(growth)))
    return Microbatch(BatchOverhead(float(overhead)))


def _network(document: Document) -> Network:
    operators = document["operators"]
    names = tuple(operator["name"] for operator in operators)
    rates = _rates(document, names)
    entered = sum(float(operator.get("entry_rate", 0.0)) for operator in operators)
    external = float(document.get("external_rate", entered if "routes" in document else math.nan))
    if math.isnan(external):
        raise InvalidInput("the document lacks external_rate; latency is that of external rows.")
    if external < 1e-9 and any(rate > 0 for rate in rates):
        raise InvalidInput(
            f"external_rate is {external:g} while operators receive rows; it must be at least 1e-9."
        )
    services = [float(operator["service_rate"]) for operator in operators]
    load = sum(rate / service for rate, service in zip(rates, services, strict=True))
    if load > MOST_PROCESSORS / 2:
        raise InvalidInput(
            f"operators need {load:.3g} processors; advice goes up to {MOST_PROCESSORS // 2}."
        )
    return network(
        names,
        np.array(rates),
        np.array(services),
        external,
        np.array([float(operator.get("arrival_scv", 1.0)) for operator in operators]),
        np.array([float(operator.get("service_scv", 1.0)) for operator in operators]),
    )


def _rates(document: Document, names: tuple[str, ...]) -> list[float]:
    operators = document["operators"]
    useless, instead = (
        ("arrival_rate", "with routes, give entry_rate")
        if "routes" in document
        else ("entry_rate", "without routes, give arrival_rate")
    )
    for operator in operators:
        if useless in operator:
            raise InvalidInput(f"operator {operator['name']!r} has {useless}; {instead}.")
    if "routes" in document:
        if len(names) > 2000:
            raise InvalidInput(f"routes go with at most 2000 operators, not {len(names)}.")
        entries = {o["name"]: float(o.get("entry_rate", 0.0)) for o in operators}
        ratios: dict[tuple[str, str], float] = {}
        for route in document["routes"]:
            edge = (route["from"], route["to"])
            ratios[edge] = ratios.get(edge, 0.0) + float(route["ratio"])
        solved = arrival_rates(names, entries, ratios)
        return [solved[name] for name in names]
    for operator in operators:
        if "arrival_rate" not in operator:
            raise InvalidInput(f"operator {operator['name']!r} lacks arrival_rate.")
    return [float(operator["arrival_rate"]) for operator in operators]
