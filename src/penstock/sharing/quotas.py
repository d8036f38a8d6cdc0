"""Communities of topologies: together each has at least, and at most, so many processors.

The cluster is divided as if there were no quotas. Communities that got more than their most are
given that, and the rest of the cluster is divided anew among the others; where none got more, the
same for those below their least. Each community by itself is divided by the arbiter. A promise
counts with its part of its community's weight, so that more queries do not make a community count
more. Not exact: which communities stay at a limit is settled one after the other.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from penstock.model.decision import Decision
from penstock.sharing.arbiter import Cluster, divide
from penstock.sharing.claims import Claims, Division, Floats
from penstock.sharing.explain import explained


@dataclass(frozen=True)
class Quota:
    """Processors of a community, and what it counts beside others and topologies without one."""

    least: int = 0
    most: int | None = None
    weight: float = 1.0


def divide_by_quotas(
    claims: Claims, cluster: Cluster, communities: Sequence[str], quotas: Mapping[str, Quota]
) -> Decision[Division]:
    """The division in which every community with a quota stays within it.

    `communities` names that of each topology, in the order of the claims. Below its least a
    community is only where it wants no more; above its most only by the minima of its topologies.
    """
    ruled = [name if name in quotas else "" for name in communities]
    claims = replace(claims, weight=_weights(claims, ruled, quotas))
    places = {name: np.flatnonzero(np.array(ruled) == name) for name in sorted(set(ruled) - {""})}
    open_places = np.arange(len(ruled))
    settled: list[Division] = []
    lines: list[str] = []
    while True:
        room = cluster.processors - sum(sum(one.processors.values()) for one in settled)
        rest = divide(_part(claims, open_places), replace(cluster, processors=max(0, room))).plan
        held = _outside(claims, cluster, rest, places, quotas)
        if not held:
            break
        for name, (division, line) in held.items():
            settled.append(division)
            lines.append(line)
            open_places = np.setdiff1d(open_places, places.pop(name))
    division = _joined([rest, *settled], cluster.slots)
    reasons, infeasible = explained(claims, cluster.processors, division)
    return Decision(division, (*reasons, *lines), infeasible)


def _outside(
    claims: Claims, cluster: Cluster, found: Division,
    places: Mapping[str, "np.ndarray[tuple[int], np.dtype[np.intp]]"],
    quotas: Mapping[str, Quota],
) -> dict[str, tuple[Division, str]]:  # fmt: skip
    """Communities that a division gives more than their most, or else less than their least."""
    given = {
        name: sum(found.processors[claims.names[place]] for place in members)
        for name, members in places.items()
    }

    def alone(name: str, processors: int) -> Division:
        members = _part(claims, places[name])
        return divide(members, replace(cluster, processors=processors)).plan

    over, under = {}, {}
    for name, processors in given.items():
        quota = quotas[name]
        if quota.most is not None and processors > quota.most:
            line = f"community {name} has its most, {quota.most}"
            over[name] = alone(name, quota.most), line
        elif processors < quota.least:
            least = alone(name, quota.least)
            if processors < sum(least.processors.values()):
                under[name] = least, f"community {name} has its least, {quota.least}"
    return over or under


def _weights(claims: Claims, ruled: Sequence[str], quotas: Mapping[str, Quota]) -> Floats:
    weight = claims.weight.copy()
    for name in set(ruled) - {""}:
        members = np.array(ruled) == name
        weight[members] *= quotas[name].weight / weight[members].sum()
    return weight


def _part(claims: Claims, places: "np.ndarray[tuple[int], np.dtype[np.intp]]") -> Claims:
    return Claims(
        tuple(claims.names[place] for place in places),
        claims.expected_s[places],
        claims.bound_s[places],
        claims.share[places],
        claims.weight[places],
        claims.least[places],
    )


def _joined(parts: Sequence[Division], slots: int) -> Division:
    processors = {name: n for one in parts for name, n in one.processors.items()}
    return Division(
        processors,
        -(-sum(processors.values()) // slots),
        tuple(name for one in parts for name in one.kept),
        {name: late for one in parts for name, late in one.missed.items()},
    )
