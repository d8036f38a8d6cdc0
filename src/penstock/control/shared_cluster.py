"""One cluster for several loops: each asks for processors, and the arbiter says what each gets.

A loop sees its portion as if it were a cluster of its own, in processors. What it wants goes to the
arbiter once a period. Where all can have what they want, they do; where not, promises decide. "The
cluster has no more" is then a limit as any other: the loop's last resort may begin.
"""

import threading
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from penstock.control.actions import Action, Outcome, SetExecutors
from penstock.control.ports import Actuator, Measurer
from penstock.control.step import Step
from penstock.model.decision import Decision, Limits
from penstock.model.observation import BatchObservation, Observation
from penstock.sharing.arbiter import MARGIN, Cluster
from penstock.sharing.claims import Claims, Division
from penstock.sharing.quotas import Quota, divide_by_quotas

PATIENCE = 6  # periods for which a promise is not given up that was kept


@dataclass(frozen=True)
class Member:
    """A topology on the cluster: its limits, what it has, and what it wants."""

    limits: Limits
    weight: float
    granted: int
    wanted: int
    expected_s: Mapping[int, float] = field(default_factory=dict)
    community: str = ""

    def curve(self, most: int) -> list[float]:
        """Latency from the least number of processors on; late by what is missing, if unknown."""
        numbers = range(self.limits.min_processors, most + 1)
        if not self.expected_s:
            return [self.limits.max_latency_s * max(self.wanted, 1) / max(k, 1) for k in numbers]
        return [self.at(k) for k in numbers]

    def at(self, processors: int) -> float:
        """The latency on so many processors; more than are known of change nothing."""
        return self.expected_s.get(min(processors, max(self.expected_s)), np.inf)


class SharedCluster:
    """Who is on the cluster, and how it is divided; several threads may ask."""

    def __init__(self, processors: int, slots: int = 1) -> None:
        self.processors, self.slots = processors, slots
        self._lock = threading.Lock()
        self._members: dict[str, Member] = {}
        self._quotas: Mapping[str, Quota] = {}
        self._division: Division | None = None
        self._given_up_for = 0  # periods in which another division was wanted

    def join(
        self, name: str, limits: Limits, weight: float = 1.0, begins: int = 0,
        wanted: int = 0, expected_s: Mapping[int, float] | None = None, community: str = "",
    ) -> None:  # fmt: skip
        """A topology comes; until it asks, it has what it begins with, its least at least.

        What it wants, and its latency by processors, are given where an earlier run of it tells.
        """
        processors = max(limits.min_processors, begins)
        with self._lock:
            self._members[name] = Member(
                limits, weight, processors, max(processors, wanted), expected_s or {}, community
            )

    def begin(self, name: str, limits: Limits) -> None:
        """A topology that has joined runs from now on, within these limits."""
        with self._lock:
            self._members[name] = replace(self._members[name], limits=limits)

    def set_quotas(self, quotas: Mapping[str, Quota]) -> None:
        """What communities have at least and at most, from the next division on."""
        with self._lock:
            self._quotas = dict(quotas)

    def missed_since(self, name: str) -> dict[str, float]:
        """Promises that are missed because one topology came, with the latencies expected."""
        with self._lock:
            others = {key: member for key, member in self._members.items() if key != name}
            before = self._divided(others).plan.missed if others else {}
            now = self._divided(self._members).plan.missed
        return {key: late for key, late in now.items() if key not in before}

    def expected_late_s(self, name: str) -> float | None:
        """The latency that is expected of one whose promise is missed; None where it is kept."""
        member = self.member(name)
        if not member.expected_s:
            return None
        expected_s = member.at(member.granted)
        return expected_s if expected_s > member.limits.max_latency_s else None

    def usable(self, name: str, granted: int) -> int:
        """Processors that it may use: what it has, and what it wants where others leave it idle.

        Communities with a most have that and no more, whoever is idle. One that has left meanwhile
        wants nothing.
        """
        with self._lock:
            member = self._members.get(name)
            quota = self._quotas.get(member.community) if member is not None else None
        if member is None or (quota is not None and quota.most is not None):
            return granted
        return max(granted, member.wanted)

    def leave(self, name: str) -> None:
        """It is gone; what it had is free."""
        with self._lock:
            self._members.pop(name, None)

    def member(self, name: str) -> Member:
        """What a topology has and wants."""
        with self._lock:
            return self._members[name]

    @property
    def names(self) -> tuple[str, ...]:
        """Who is on the cluster."""
        with self._lock:
            return tuple(self._members)

    def asked(self, name: str, step: Step) -> None:
        """What its loop wanted in a period; where guards held it, it still wants what it did."""
        if step.decision is None or step.executors_wanted is None:
            return
        decision, guarded = step.decision.decision, step.decision.guarded.processors
        held = guarded == step.executors_before != decision.plan.processors
        with self._lock:
            if (member := self._members.get(name)) is not None:
                self._members[name] = replace(
                    member,
                    wanted=member.wanted if held else step.executors_wanted,
                    expected_s=decision.expected_s or member.expected_s,
                )

    def settle(self) -> Decision[Division]:
        """Divide the cluster anew."""
        with self._lock:
            decision = self._decided(self._members)
            if self._too_soon(decision.plan):
                return self._as_before(decision)
            self._division = decision.plan
            given = self._topped_up(dict(decision.plan.processors))
            for name, processors in given.items():
                self._members[name] = replace(self._members[name], granted=processors)
            executors = -(-sum(given.values()) // self.slots)
            return replace(
                decision, plan=replace(decision.plan, processors=given, executors=executors)
            )

    def _too_soon(self, plan: Division) -> bool:
        """Whether a promise would be given up that was kept, and was not for long enough before.

        Near its limit a load that wavers a little makes latencies waver much.
        """
        before = self._division
        given_up = before is not None and set(before.kept) - set(plan.kept) & self._members.keys()
        granted = sum(member.granted for member in self._members.values())
        joined = before is not None and self._members.keys() != before.processors.keys()
        if not given_up or joined or granted > self.processors:
            self._given_up_for = 0
            return False
        self._given_up_for += 1
        return self._given_up_for <= PATIENCE

    def _as_before(self, decision: Decision[Division]) -> Decision[Division]:
        assert self._division is not None
        given = {name: member.granted for name, member in self._members.items()}
        kept = set(self._division.kept)
        plan = Division(
            given, -(-sum(given.values()) // self.slots), self._division.kept,
            {name: x for name, x in decision.plan.missed.items() if name not in kept},
        )  # fmt: skip
        held = f"as before for {PATIENCE - self._given_up_for + 1} periods: no promise is given up"
        return replace(decision, plan=plan, reasons=(f"{held} for a moment", *decision.reasons))

    def _decided(self, members: Mapping[str, Member]) -> Decision[Division]:
        wanted = {name: member.wanted for name, member in members.items()}
        total = sum(wanted.values())
        if total <= self.processors and not self._over_quota(wanted):
            said = f"all have what they want, {total} of {self.processors} processors"
            return Decision(Division(wanted, 0, tuple(wanted), {}), (said,))
        return self._divided(members)

    def _divided(self, members: Mapping[str, Member]) -> Decision[Division]:
        return divide_by_quotas(
            self._claims(members), Cluster(self.processors, self.slots, self._division),
            [member.community for member in members.values()], self._quotas,
        )  # fmt: skip

    def _over_quota(self, given: Mapping[str, int]) -> set[str]:
        """Communities that would have more than their most."""
        used: Counter[str] = Counter()
        for name, processors in given.items():
            used[self._members[name].community] += processors
        mosts = {name: quota.most for name, quota in self._quotas.items()}
        return {name for name, most in mosts.items() if most is not None and used[name] > most}

    def _claims(self, members: Mapping[str, Member]) -> Claims:
        curves = [
            member.curve(max(member.limits.min_processors, min(member.wanted, self.processors)))
            for member in members.values()
        ]
        width = max(map(len, curves))
        limits = [member.limits for member in members.values()]
        return Claims(
            tuple(members),
            np.array([[*curve, *[np.inf] * (width - len(curve))] for curve in curves]),
            np.array([one.max_latency_s for one in limits]),
            np.array([one.share for one in limits]),
            np.array([member.weight for member in members.values()]),
            np.array([one.min_processors for one in limits], dtype=np.int64),
        )

    def _topped_up(self, given: dict[str, int]) -> dict[str, int]:
        """What no promise needs, one by one for whose promise is nearest to its bound at the
        expected load; promises that are missed anyway come last.

        What one wants is for a load that may come: by that, who foresees least would have most.
        """
        members = self._members
        for _ in range(self.processors - sum(given.values())):
            short = [
                name
                for name in given
                if given[name] < members[name].wanted and self._has_room(name, given)
            ]
            if not short:
                break
            given[max(short, key=lambda name: self._pressed(name, given[name]))] += 1
        return given

    def _pressed(self, name: str, processors: int) -> tuple[bool, float, float]:
        """Whether its promise can be kept with so many, and how late it is expected to be.

        A little more where it had more before. Who is late already would be late with one more too.
        """
        member = self._members[name]
        held = 1 + MARGIN * (processors < member.granted)
        lateness = member.curve(processors)[-1] / member.limits.max_latency_s
        return lateness <= 1, held * lateness, held * member.wanted / max(processors, 1)

    def _has_room(self, name: str, given: Mapping[str, int]) -> bool:
        """Whether its community may have another processor."""
        community = self._members[name].community
        return community not in self._over_quota({**given, name: given[name] + 1})


class PortionMeasurer:
    """What a topology's queries show, with the processors that are its part of the cluster."""

    def __init__(self, name: str, shared: SharedCluster, own: Measurer) -> None:
        self._name, self._shared, self._own = name, shared, own

    def observe(self) -> Observation | None:
        """The observation of the queries, as if no other processors were there."""
        seen = self._own.observe()
        if seen is None:
            return None
        left, nodes = self._shared.member(self._name).granted, []
        for node in seen.nodes:
            slots = min(node.slots, left)
            left -= slots
            if slots:
                nodes.append(replace(node, slots=slots))
        mine = replace(seen, nodes=tuple(nodes), part_of_cluster=True)
        return replace(mine, batches=_on_fewer(seen.batches, seen.processors, mine.processors))


def _on_fewer(
    batches: BatchObservation | None, measured: int, used: int
) -> BatchObservation | None:
    """The same batches, whose work fewer processors shared than are on the cluster.

    Where idle ones of others helped, it is not known how many, nor what was overhead.
    """
    if batches is None or not used:
        return batches
    shared_s = (batches.mean_duration_s - batches.mean_overhead_s) * measured / used
    left_s = batches.mean_duration_s - shared_s
    return replace(batches, mean_overhead_s=left_s if left_s >= 0 else np.nan)


class Portion:
    """The actuator of one topology on a shared cluster: its processors are the arbiter's to give.

    Everything else is carried out by the actuator of its own queries.
    """

    def __init__(self, name: str, shared: SharedCluster, own: Actuator) -> None:
        self._name, self._shared, self._own = name, shared, own

    def unavailable(self) -> Mapping[str, str]:
        """What its queries cannot do; and more processors, while the cluster has no more."""
        member = self._shared.member(self._name)
        cannot = {k: v for k, v in self._own.unavailable().items() if k != SetExecutors.NAME}
        if member.granted < member.wanted:
            cannot[SetExecutors.NAME] = (
                f"the cluster is shared, and {member.granted} processors are its part of it"
            )
        return cannot

    def executors(self) -> int:
        """Processors that it was given."""
        return self._shared.member(self._name).granted

    def slots_per_executor(self) -> int:
        """Its portion is counted in processors."""
        return 1

    def act(self, action: Action) -> Outcome:
        """Processors are asked of the arbiter, all else of the queries."""
        if isinstance(action, SetExecutors):
            return Outcome(action, done=True, detail="asked of the cluster that is shared")
        return self._own.act(action)
