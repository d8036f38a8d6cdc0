"""The observations of a run as columns over time, ready to be drawn."""

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from penstock.control.records import DecisionRecord
from penstock.model.observation import ComponentObservation, Observation

MOST_POINTS = 1_200  # a chart is not wider than that

Column = list[float]


def thinned(latency_s: Sequence[float], most: int = MOST_POINTS) -> list[int]:
    """Places of at most so many periods: of each few neighbours the one with the worst latency.

    Taking every n-th would hide the late results that a person looks for. The newest one stays.

    >>> thinned([1.0, 9.0, 2.0, math.nan, 3.0, 1.0], most=3)
    [1, 4, 5]
    """
    if len(latency_s) <= most:
        return list(range(len(latency_s)))
    worst = np.nan_to_num(np.asarray(latency_s, dtype=np.float64), nan=-1.0)
    parts = np.array_split(np.arange(len(worst) - 1), most - 1)
    return [*(int(part[worst[part].argmax()]) for part in parts), len(worst) - 1]


def columns(observations: Sequence[Observation]) -> dict[str, Column]:
    """One list for each figure, NaN where nothing was measured."""

    def column(read: Callable[[Observation], float]) -> Column:
        return [float(read(o)) for o in observations]

    def latency(name: str) -> Column:
        return column(lambda o: math.nan if o.latency is None else getattr(o.latency, name))

    def batch(name: str) -> Column:
        return column(lambda o: math.nan if o.batches is None else getattr(o.batches, name))

    return {
        "at_s": column(lambda o: o.at_s),
        "arrival_rate_per_s": column(lambda o: o.arrival_rate_per_s),
        "backlog_rows": column(lambda o: o.backlog_rows),
        "latency_mean_s": latency("mean_s"),
        "latency_p95_s": latency("p95_s"),
        "latency_share_s": latency("share_s"),
        "latency_max_s": latency("max_s"),
        "in_time_share": latency("in_time_share"),
        "executors": column(lambda o: len(o.nodes)),
        "processors": column(lambda o: o.processors),
        "load": column(load),
        "batch_duration_s": batch("mean_duration_s"),
        "batch_overhead_s": batch("mean_overhead_s"),
    }


def load(observation: Observation) -> float:
    """Share of the executors' processor-seconds that was used; NaN where not measured."""
    offered_s = sum(node.slots for node in observation.nodes) * observation.period_s
    used_s = sum(node.busy_s for node in observation.nodes)
    return used_s / offered_s if offered_s > 0 else math.nan


def component_columns(observations: Sequence[Observation]) -> dict[str, dict[str, Column]]:
    """For each component ever seen, its figures over the same times."""
    names = list(dict.fromkeys(c.name for o in observations for c in o.components))
    seen = [{c.name: c for c in o.components} for o in observations]

    def column(name: str, read: Callable[[ComponentObservation, Observation], float]) -> Column:
        return [
            float(read(found[name], o)) if name in found else math.nan
            for found, o in zip(seen, observations, strict=True)
        ]

    return {
        name: {
            "arrival_rate_per_s": column(name, lambda c, _: c.arrival_rate_per_s),
            "service_time_s": column(name, lambda c, _: c.service_time_s),
            "parallelism": column(name, lambda c, _: c.parallelism),
            "backlog_rows": column(name, lambda c, _: c.backlog_rows),
            "busy_processors": column(name, lambda c, o: c.busy_s / o.period_s),
        }
        for name in names
    }


def forecast_columns(
    decisions: Sequence[DecisionRecord], ahead_s: float, most: int = MOST_POINTS
) -> dict[str, Column]:
    """What was foreseen, at the time it was foreseen for: by the policy itself, or by the loop."""
    foreseen = [
        d for d in decisions if d.foreseen_rate_per_s is not None or "load_per_s" in d.numbers
    ]
    foreseen = _newest_words(foreseen[:: max(1, -(-len(foreseen) // most))], ahead_s)

    def column(name: str, otherwise: Callable[[DecisionRecord], float]) -> Column:
        return [float(d.numbers.get(name, otherwise(d))) for d in foreseen]

    return {
        "at_s": [_foreseen_for_s(d, ahead_s) for d in foreseen],
        "rate_per_s": column("load_per_s", lambda d: d.foreseen_rate_per_s or 0.0),
        "upper_per_s": column("load_upper_per_s", lambda _: math.nan),
        "latency_s": column("latency_expected_s", lambda _: math.nan),
    }


def _foreseen_for_s(decision: DecisionRecord, ahead_s: float) -> float:
    return decision.at_s + decision.numbers.get("ahead_s", ahead_s)


def _newest_words(decisions: Sequence[DecisionRecord], ahead_s: float) -> list[DecisionRecord]:
    """Without what was said of a moment before a later decision looked no further than there."""
    kept, reached_s = list[DecisionRecord](), math.inf
    for decision in reversed(decisions):
        if _foreseen_for_s(decision, ahead_s) < reached_s:
            kept.append(decision)
            reached_s = _foreseen_for_s(decision, ahead_s)
    return kept[::-1]


def wanted_columns(
    shadows: Sequence[DecisionRecord], most: int = MOST_POINTS
) -> dict[str, dict[str, Column]]:
    """The processors that each policy which only watched would have had, over time."""
    found: dict[str, dict[str, Column]] = {}
    for name in dict.fromkeys(d.policy for d in shadows):
        mine = [d for d in shadows if d.policy == name]
        mine = mine[:: max(1, -(-len(mine) // most))]
        found[name] = {
            "at_s": [d.at_s for d in mine],
            "processors": [float(d.guarded.processors) for d in mine],
        }
    return found


def changed_places(observations: Sequence[Observation]) -> list[dict[str, Any]]:
    """Key groups that were found on another node than in the observation before."""
    moves: list[dict[str, Any]] = []
    homes: dict[str, list[str]] = {}
    for observation in observations:
        for name, held in observation.key_groups.items():
            now = [str(node) for node in held.node]
            before = homes.get(name, [])
            moves += [
                {"at_s": observation.at_s, "component": name, "group": group,
                 "from": old, "to": new}
                for group, (old, new) in enumerate(zip(before, now, strict=False))
                if old and new and old != new
            ]  # fmt: skip
            homes[name] = now
    return moves
