"""Balanced graph partitioning with METIS: parts of even weight, little traffic between them.

Reference: Karypis and Kumar 1998, as used in Madsen et al. 2017, s. 4.3.2 (step 2) and in COLA
(s. 2.1).
"""

import numpy as np
import pymetis

from penstock.allocation.problem import TOLERANCE, Floats, Ints, summed_by
from penstock.allocation.traffic import Traffic

SCALE = 1_000_000  # METIS wants whole numbers


def split(members: Ints, weight: Floats, traffic: Traffic, parts: int, seed: int) -> list[Ints]:
    """Key groups in at most `parts` non-empty parts; always more than one if that is asked for.

    `weight` is for each member. A member heavier than an even part is a part of its own: METIS
    would have nothing to cut there, and says so on standard output. METIS may leave a part empty or
    put everything into one; then the members are dealt out by weight instead.
    """
    parts = min(parts, len(members))
    if parts <= 1:
        return [members]
    heavy = weight > weight.sum() / parts * (1 + TOLERANCE)
    if heavy.any():
        alone = [members[[index]] for index in np.flatnonzero(heavy)]
        return alone + split(members[~heavy], weight[~heavy], traffic, parts - len(alone), seed)
    if 2 * parts > len(members):
        return _dealt(members, weight, parts)
    labels = _metis(members, weight, traffic, parts, seed)
    found = [members[labels == label] for label in range(parts)]
    found = [part for part in found if len(part)]
    return found if len(found) > 1 else _dealt(members, weight, parts)


def _metis(members: Ints, weight: Floats, traffic: Traffic, parts: int, seed: int) -> Ints:
    position = np.full(len(traffic.operator), -1)
    position[members] = np.arange(len(members))
    inside = (position[traffic.source] >= 0) & (position[traffic.target] >= 0)
    inside &= (traffic.rate > 0) & (traffic.source != traffic.target)
    left, right = position[traffic.source[inside]], position[traffic.target[inside]]
    pair = np.minimum(left, right) * len(members) + np.maximum(left, right)
    pairs, which = np.unique(pair, return_inverse=True)
    rates = summed_by(which, traffic.rate[inside], len(pairs))
    low, high = pairs // len(members), pairs % len(members)
    start, end = np.concatenate([low, high]), np.concatenate([high, low])
    order = np.argsort(start, kind="stable")
    edges = np.concatenate([[0], np.cumsum(np.bincount(start, minlength=len(members)))])
    both = np.concatenate([rates, rates])[order]
    _, labels = pymetis.part_graph(
        parts,
        pymetis.CSRAdjacency(edges.tolist(), end[order].tolist()),
        vweights=_whole(weight),
        eweights=_whole(both) if len(both) else None,
        options=pymetis.Options(seed=seed),
    )
    return np.asarray(labels, dtype=np.int64)


def _whole(values: Floats) -> list[int]:
    largest = float(values.max(initial=0.0))
    # Sums must stay below 2^31 as well.
    scale = min(SCALE, 2e9 / max(len(values), 1)) / largest if largest > 0 else 0.0
    whole: list[int] = np.maximum(1, np.rint(values * scale)).astype(np.int64).tolist()
    return whole


def _dealt(members: Ints, weight: Floats, parts: int) -> list[Ints]:
    sums, chosen = np.zeros(parts), np.empty(len(members), dtype=np.int64)
    for index in np.argsort(-weight, kind="stable"):
        chosen[index] = sums.argmin()
        sums[chosen[index]] += max(float(weight[index]), 1e-12)
    return [members[chosen == part] for part in range(parts) if (chosen == part).any()]
