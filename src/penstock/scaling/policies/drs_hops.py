"""What the model `hops` is told by a window: who sends to whom, and what batches cost."""

import math
from collections.abc import Sequence

import numpy as np

from penstock.forecast.regression import LinearRegression
from penstock.model.batch_overhead import BatchOverhead
from penstock.model.observation import Floats, Observation
from penstock.scaling.models.hops import Hops, Way, way
from penstock.scaling.models.microbatch import overhead_of
from penstock.scaling.offered import counted_rates
from penstock.scaling.policies.policy import ScalingContext

MOST_RETURNED = 0.95  # of a component's rows, in a loop: more would go round without end
NEWEST = 60  # periods that say what a batch costs now


def works_in_batches(window: Sequence[Observation]) -> bool:
    """Whether components have batches of their own."""
    return bool(window) and any(one.batch_s > 0 for one in window[-1].components)


def learn_hops(
    context: ScalingContext, names: tuple[str, ...], prior: BatchOverhead, interval_s: float
) -> Hops:
    """The model of components that run apart, in the order of their names."""
    return Hops(_way(context, names), _overheads(context.window, names, prior), interval_s)


def _way(context: ScalingContext, names: tuple[str, ...]) -> Way:
    place = {name: i for i, name in enumerate(names)}
    rates = np.zeros(len(names))
    sent = np.zeros((len(names), len(names)))
    for observation in context.window[-NEWEST:]:
        for edge, rate in counted_rates(context, observation).items():
            if edge[0] in place and edge[1] in place:
                sent[place[edge[0]], place[edge[1]]] += rate * observation.period_s
        for one in observation.components:
            if one.name in place and one.arrival_rate_per_s > 0:
                rates[place[one.name]] += one.arrival_rate_per_s * observation.period_s
    share = sent / np.maximum(rates, sent.sum(axis=0)).clip(min=1e-12)
    own = share.diagonal().clip(max=MOST_RETURNED)
    np.fill_diagonal(share, own)
    senders = [tuple(np.flatnonzero(column).tolist()) for column in share.T]
    parts = [tuple(share[list(ups), i].tolist()) for i, ups in enumerate(senders)]
    last = [not (set(np.flatnonzero(row).tolist()) - {i}) for i, row in enumerate(share)]
    return way(tuple(senders), tuple(parts), _results(rates, np.array(last)))


def _results(rates: Floats, last: np.ndarray) -> Floats:
    """The part of all results that each component makes: those that send nothing on, by rows."""
    made = np.where(last if last.any() else np.ones(len(rates), dtype=bool), rates, 0.0)
    total = float(made.sum())
    return made / total if total > 0 else np.full(len(rates), 1.0 / len(rates))


def _overheads(
    window: Sequence[Observation], names: tuple[str, ...], prior: BatchOverhead
) -> tuple[BatchOverhead, ...]:
    """O(k) of each component: what its batches took beside the work on their rows."""
    lines = dict.fromkeys(names, LinearRegression())
    for observation in window[-NEWEST:]:
        for one in observation.components:
            if one.name not in lines or not (one.batch_s > 0 and one.parallelism > 0):
                continue
            work_s = one.batch_rows * one.service_time_s / one.parallelism
            if math.isfinite(work_s):
                own_s = max(one.batch_s - work_s, 0.0)
                lines[one.name] = lines[one.name].add(float(one.parallelism), own_s)
    return tuple(overhead_of(line, prior)[0] for line in lines.values())
