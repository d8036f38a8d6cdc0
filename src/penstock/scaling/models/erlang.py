"""Erlang's delay formula, stable for thousands of processors (Fu et al. 2017, eq. 2 and 3).

Powers and factorials overflow beyond some 170 processors, so the delay is built from Erlang's
loss recursion. With a = lambda / mu processors' worth of load and I(k) = 1 / B(k, a):

    I(0) = 1,  I(k) = 1 + (k / a) I(k - 1)
    C(k, a) = 1 / (1 + (1 - a / k) (I(k) - 1))        probability of waiting
    E[Q](k) = C(k, a) / (mu (k - a))

An error in I(n), n < a, shrinks by n / a at each step, so the recursion may start nine standard
deviations below the load instead of at zero and still be exact to double precision: the cost is
in the order of sqrt(a), not a.
"""

import math
from collections.abc import Iterator

import numpy as np

from penstock.model.observation import Floats, Ints

_DEVIATIONS = 9.0  # exp(-81 / 2) is below the resolution of a double
_NEVER = 1e250  # nobody will ever wait; going on to millions of processors would only take time


def least_processors(load: float) -> int:
    """The fewest processors that can keep up: floor(a) + 1; one where nothing arrives."""
    return math.floor(load) + 1


def inverse_loss(load: float, processors: int) -> float:
    """1 / B(k, a): the inverse of Erlang's loss probability; infinite beyond 1e250."""
    if load <= 0:
        return math.inf
    first = max(0, math.floor(min(load, processors) - _DEVIATIONS * math.sqrt(load)) - 1)
    inverse = 1.0 if first == 0 else load / (load - first)
    for k in range(first + 1, processors + 1):
        inverse = 1.0 + k / load * inverse
        if inverse > _NEVER:
            return math.inf
    return inverse


def waiting_time_s(arrival_rate_per_s: float, service_rate_per_s: float, processors: int) -> float:
    """Mean time in the queue of an M/M/k node; infinite when it cannot keep up.

    >>> waiting_time_s(0.5, 1.0, 1)
    1.0
    """
    load = arrival_rate_per_s / service_rate_per_s
    if load >= processors:
        return math.inf
    if load <= 0:
        return 0.0
    return _waiting(load, service_rate_per_s, processors, inverse_loss(load, processors))


def _waiting(load: float, service_rate_per_s: float, processors: int, inverse: float) -> float:
    delayed = 1.0 / (1.0 + (1.0 - load / processors) * (inverse - 1.0))
    return delayed / (service_rate_per_s * (processors - load))


def gains_s(arrival_rate_per_s: float, service_rate_per_s: float) -> Iterator[float]:
    """How much waiting time each further processor takes away, from the fewest possible on."""
    load = arrival_rate_per_s / service_rate_per_s
    k = least_processors(load)
    if load <= 0:
        return
    inverse = inverse_loss(load, k)
    before = _waiting(load, service_rate_per_s, k, inverse)
    while True:
        k += 1
        inverse = 1.0 + k / load * inverse
        after = 1.0 / (1.0 + (1.0 - load / k) * (inverse - 1.0)) / (service_rate_per_s * (k - load))
        yield before - after
        before = after


def waiting_times_s(
    arrival_rate_per_s: Floats, service_rate_per_s: Floats, processors: Ints
) -> Floats:
    """`waiting_time_s` of many nodes at once."""
    load = arrival_rate_per_s / service_rate_per_s
    found = np.where(load >= processors, np.inf, 0.0)
    busy = np.flatnonzero((load > 0) & (load < processors))
    a, k = load[busy], processors[busy]
    inverse = inverse_losses(a, k)
    delayed = 1.0 / (1.0 + (1.0 - a / k) * (inverse - 1.0))
    found[busy] = delayed / (service_rate_per_s[busy] * (k - a))
    return found


def inverse_losses(load: Floats, processors: Ints) -> Floats:
    """`inverse_loss` of many nodes at once; loads are above zero."""
    least = np.minimum(load, processors)
    k = np.maximum(0, np.floor(least - _DEVIATIONS * np.sqrt(load)) - 1)
    with np.errstate(over="ignore", divide="ignore"):
        inverse = np.where(k == 0, 1.0, load / np.where(k == 0, 1.0, load - k))
        for _ in range(int((processors - k).max(initial=0))):
            k += 1
            inverse = np.where(k <= processors, 1.0 + k / load * inverse, inverse)
    return np.where(inverse > _NEVER, np.inf, inverse)


def all_gains_s(
    arrival_rate_per_s: Floats, service_rate_per_s: Floats, weights: Floats, floor: float, most: int
) -> tuple[Ints, Floats]:
    """Weighted gains of many nodes above a floor: the node of each gain, node by node, falling."""
    load = arrival_rate_per_s / service_rate_per_s
    node = np.flatnonzero((weights > 0) & (load > 0))
    a, mu, weight = load[node], service_rate_per_s[node], weights[node]
    k = np.floor(a) + 1
    inverse = inverse_losses(a, k.astype(np.int64))
    before = 1.0 / (1.0 + (1.0 - a / k) * (inverse - 1.0)) / (mu * (k - a))
    nodes, gains = [node[:0]], [a[:0]]
    for _ in range(most):
        k = k + 1
        with np.errstate(over="ignore"):
            inverse = 1.0 + k / a * inverse
        after = 1.0 / (1.0 + (1.0 - a / k) * (inverse - 1.0)) / (mu * (k - a))
        gain = (before - after) * weight
        going = gain > floor
        if not going.any():
            break
        node, a, mu, weight = node[going], a[going], mu[going], weight[going]
        k, inverse, before = k[going], inverse[going], after[going]
        nodes.append(node)
        gains.append(gain[going])
    owner, gain = np.concatenate(nodes), np.concatenate(gains)
    order = np.argsort(owner, kind="stable")
    return owner[order], gain[order]
