"""Key groups in the loop: allocate in thought, scale, allocate again, drain.

Madsen et al. 2017, Algorithm 1.

What is planned is data; the loop carries it out. Nodes to be removed are marked and emptied over as
many rounds as the migration budget takes; only then may they leave.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np

from penstock.allocation.albic import AlbicOptions
from penstock.allocation.assignment import CPU, Objective
from penstock.allocation.budget import SearchBudget
from penstock.allocation.framework import (
    Adaptation,
    Cluster,
    NewNode,
    ScalingChange,
    adapt,
)
from penstock.allocation.policies import FULL_LOAD, AllocationContext, decide
from penstock.allocation.problem import (
    NOWHERE,
    AllocationProblem,
    Floats,
    Resource,
    distance,
)
from penstock.allocation.solver import Allocation
from penstock.control.actions import Move, Outcome
from penstock.control.key_groups import KeyGroupTable, LearntCost, key_group_table
from penstock.control.records import AllocationRecord
from penstock.model.decision import Decision
from penstock.model.observation import Observation

NEWEST_WEIGHT = 0.5  # of the newest load in the running mean: single tasks are noisy
LEAST_GAIN = 0.1  # of the load distance; less is not worth a move
LEAST_COLLOCATED = 0.02  # share of traffic; less is not worth a move
COLLOCATING = ("albic", "cola", "resource-aware")  # policies that move for less traffic alone
REPAID_S = 600.0  # within which waiting less for remote bytes has to repay loading state elsewhere
UNEVEN_OTHER = 25.0  # points of a processor that other work may differ between nodes by chance
HEAVY_LOAD = 80.0  # points; a node above it is what scaling out is meant to relieve


@dataclass(frozen=True)
class AllocationRules:
    """What bounds a round of moves."""

    policy: str
    max_migrations: int = 10
    max_cost_s: float = math.inf  # seconds of loading state, added over all moves
    tolerance: float = 10.0  # points of load distance that are left alone
    time_limit_s: float = 1.0
    seed: int = 0
    albic: AlbicOptions = field(default_factory=AlbicOptions)
    objective: Objective = "resource"


class Allocating:
    """Plans where key groups live, period after period."""

    def __init__(self, rules: AllocationRules) -> None:
        self.rules = rules
        self.cost = LearntCost()
        self._leaving: tuple[str, ...] = ()
        self._load: dict[str, Floats] = {}
        self._other: dict[str, float] = {}  # points of other work of each node, by its name
        self._waited_s = 0.0  # since a batch last ended
        self._waited_busy_s: dict[str, float] = {}  # of each node in that time
        self._rng = np.random.default_rng(rules.seed)

    def plan(self, observation: Observation, wanted: int, dry_run: bool) -> AllocationRecord | None:
        """What to move now, given how many executors scaling wants; None without key groups."""
        whole = self._whole_batches(observation)
        if whole is None:
            return None  # nothing new was seen, and no batch might come to show a move
        measured = self._smoothed(key_group_table(whole))
        move_s = self.cost.seconds(measured.state_bytes)
        table = measured.worth_joining(move_s, REPAID_S)
        if not len(table) or not table.nodes:
            return None
        answers: list[Decision[Allocation]] = []
        held: list[str] = []
        crowded = self._mark(table, wanted)
        cluster = Cluster(tuple(node.name for node in table.nodes), self._problem(table))
        adapted = adapt(
            cluster, self._allocate(table, answers), self._scaling(table, wanted, held)
        )  # fmt: skip
        worth = self._worth(table, adapted)
        moves = () if worth is not None else _moves(table, adapted)
        decided = answers[-1]
        return AllocationRecord(
            at_s=observation.at_s,
            policy=self.rules.policy,
            moves=moves,
            load_distance=distance(cluster.problem, table.home).load_distance,
            planned_distance=decided.plan.distance.load_distance,
            bound=decided.plan.bound,
            collocation=measured.collocation,
            planned_collocation=_planned_collocation(measured, moves),
            leaving=self._leaving,
            left_on_leaving=_left(table, self._leaving, moves),
            holds_scaling=crowded or (held[0] if held and moves else None),
            reasons=(worth,) if worth is not None else decided.reasons,
            infeasible=decided.infeasible,
            dry_run=dry_run,
        )

    def learn(self, outcome: Outcome) -> None:
        """Take in what moves cost."""
        if outcome.migration is not None:
            self.cost = self.cost.corrected(outcome.migration)

    def _whole_batches(self, seen: Observation) -> Observation | None:
        """The observation over all the time since a batch last ended; None if none did in it.

        The work of a batch is known when it ends, and may have taken several periods: as a share of
        the last one only, it would look like more than nodes can do.
        """
        self._waited_s += seen.period_s
        for node in seen.nodes:
            busy_s = 0.0 if math.isnan(node.busy_s) else node.busy_s
            self._waited_busy_s[node.name] = self._waited_busy_s.get(node.name, 0.0) + busy_s
        if seen.batches is None or not seen.batches.count:
            return None
        nodes = tuple(replace(node, busy_s=self._waited_busy_s[node.name]) for node in seen.nodes)
        whole = replace(seen, period_s=self._waited_s, nodes=nodes)
        self._waited_s, self._waited_busy_s = 0.0, {}
        return whole

    def _smoothed(self, table: KeyGroupTable) -> KeyGroupTable:
        load = table.load.copy()
        there = dict.fromkeys(table.component)
        self._load = {name: known for name, known in self._load.items() if name in there}
        for component in there:
            rows = np.array([one == component for one in table.component])
            before = self._load.get(component)
            if before is not None and len(before) == int(rows.sum()):
                load[rows] = NEWEST_WEIGHT * load[rows] + (1 - NEWEST_WEIGHT) * before
            self._load[component] = load[rows]
        return replace(table, load=load)

    def _lasting_other_load(self, table: KeyGroupTable) -> Floats:
        """Work besides key groups that some nodes have more of than others, and had before.

        Spark deals tasks without state to whichever executor is free, so small differences are
        chance, and key groups that follow them would move to and fro.
        """
        slots = np.array([max(node.slots, 1) for node in table.nodes], dtype=np.float64)
        least = float((table.other_load / slots).min(initial=math.inf))
        more = np.maximum(table.other_load - (least + UNEVEN_OTHER) * slots, 0.0)
        before = [self._other.get(node.name, math.inf) for node in table.nodes]
        self._other = {
            node.name: float(load) for node, load in zip(table.nodes, more, strict=True)
        }  # fmt: skip
        return np.minimum(more, before)

    def _mark(self, table: KeyGroupTable, wanted: int) -> str | None:
        """Keep as many marks as nodes are to go; new ones where emptying costs least.

        None is marked, and the answer says why, if the others could not carry all work.
        """
        usable = [node.name for node in table.nodes if not node.draining]
        surplus = max(0, len(usable) - wanted)
        leaving = [name for name in self._leaving if name in usable][:surplus]
        cost_s = self.cost.seconds(table.state_bytes)
        settled = table.home != NOWHERE
        on_node = np.bincount(table.home[settled], cost_s[settled], len(table.nodes)).tolist()
        held = {node.name: on_node[place] for place, node in enumerate(table.nodes)}
        # Of equals the youngest goes, as it does where nobody chooses.
        order = sorted(range(len(usable)), key=lambda n: (held[usable[n]], -n))
        leaving += [name for name in (usable[n] for n in order) if name not in leaving][
            : surplus - len(leaving)
        ]
        self._leaving = tuple(leaving)
        slots = {node.name: node.slots for node in table.nodes if not node.draining}
        left = sum(count for name, count in slots.items() if name not in leaving)
        points = float(table.load.sum() + table.other_load.sum())
        # More than all nodes can have done is no measure of what the rest can carry.
        measured = points <= FULL_LOAD * sum(slots.values())
        if not leaving or not measured or points <= FULL_LOAD * left:
            return None
        self._leaving = ()
        return (
            f"without {', '.join(leaving)} the other executors would be loaded "
            f"{points / left:.3g} points of {FULL_LOAD:g} each, so none is removed"
        )

    def _problem(self, table: KeyGroupTable) -> AllocationProblem:
        """One budget of 1 that keeps both limits: no move is cheaper than its share of either."""
        rules = self.rules
        cost = self.cost.seconds(table.state_bytes) / rules.max_cost_s
        return AllocationProblem(
            load=table.load,
            home=table.home,
            capacity=np.array([float(node.slots) for node in table.nodes]),
            draining=np.array([n.draining or n.name in self._leaving for n in table.nodes]),
            migration_cost=np.maximum(cost, 1.0 / rules.max_migrations),
            max_migration_cost=1.0 + 1e-9,
            other_load=self._lasting_other_load(table),
            resources=(*self._reserved(table), *_memory(table)),
        )

    def _reserved(self, table: KeyGroupTable) -> tuple[Resource, ...]:
        """Processors that key groups reserve: what was declared, or what they use if that is more.

        Only the policy that plans by reservations is bound by them.
        """
        if self.rules.policy != "resource-aware":
            return ()
        slots = np.array([float(node.slots) for node in table.nodes])
        use = np.fmax(table.load, FULL_LOAD * table.reserved_cpu)
        return (Resource(CPU, use, FULL_LOAD * slots),)

    def _allocate(
        self, table: KeyGroupTable, answers: list[Decision[Allocation]]
    ) -> Callable[[AllocationProblem], Allocation]:
        emptied = self._emptied(table)
        names = [node.name for node in table.nodes if node.name not in emptied]

        def allocate(problem: AllocationProblem) -> Allocation:
            new = range(len(problem.capacity) - len(names))
            cluster = Cluster((*names, *(f"new {n}" for n in new)), problem)
            context = AllocationContext(
                cluster, table.names, table.traffic, albic=self.rules.albic,
                objective=self.rules.objective,
            )  # fmt: skip
            budget = SearchBudget.of_time(self.rules.time_limit_s)
            answers.append(decide(self.rules.policy, context, budget, self._rng))
            return answers[-1].plan

        return allocate

    def _emptied(self, table: KeyGroupTable) -> set[str]:
        """Nodes that the framework gives back before it plans."""
        used = {table.nodes[n].name for n in np.unique(table.home).tolist() if n != NOWHERE}
        going = {node.name for node in table.nodes if node.draining or node.name in self._leaving}
        emptied = going - used
        return emptied if len(emptied) < len(table.nodes) else set()

    def _scaling(
        self, table: KeyGroupTable, wanted: int, held: list[str]
    ) -> Callable[[Cluster, Allocation], ScalingChange]:
        def scale(cluster: Cluster, plan: Allocation) -> ScalingChange:
            usable = [node for node in table.nodes if not node.draining]
            if wanted <= len(usable):
                return ScalingChange()  # nodes to remove are marked already
            now = float(cluster.problem.node_loads(cluster.problem.home).max())
            then = float(cluster.problem.node_loads(plan.placement).max())
            if now > HEAVY_LOAD >= then:
                held.append(
                    "no executor is added yet, as a better placement is enough "
                    f"(heaviest node {now:.3g} -> {then:.3g} points)"
                )
                return ScalingChange()
            slots = float(usable[0].slots) if usable else 1.0
            limits = tuple(float(one.limit.min()) for one in cluster.problem.resources)
            new = range(wanted - len(usable))
            return ScalingChange(add=tuple(NewNode(f"new {n}", slots, limits) for n in new))

        return scale

    def _worth(self, table: KeyGroupTable, adapted: Adaptation) -> str | None:
        """Why nothing should move, or None."""
        problem, plan = adapted.cluster.problem, adapted.plan
        homeless = problem.home == NOWHERE
        if homeless.any() or problem.draining[problem.home].any():
            return None
        moves = _moves(table, adapted)
        if self.rules.policy in COLLOCATING:
            gain = _planned_collocation(table, moves) - table.collocation
            if gain > LEAST_COLLOCATED:
                return None
        if problem.overuse(problem.home) > problem.overuse(plan.placement):
            return None
        before = distance(problem, problem.home).load_distance
        if before <= self.rules.tolerance:
            numbers = f"load distance {before:.3g} is within the tolerance"
            return f"balanced well enough ({numbers} {self.rules.tolerance:g})"
        after = plan.distance.load_distance
        if after > (1 - LEAST_GAIN) * before:
            numbers = f"load distance {before:.3g}, at best {after:.3g}"
            return f"no better balance can be had in one round ({numbers})"
        return None


def _memory(table: KeyGroupTable) -> tuple[Resource, ...]:
    """State that has to fit into the memory of nodes, where it can at all."""
    limit = np.array([
        math.inf if node.state_memory_bytes is None else node.state_memory_bytes
        for node in table.nodes
    ])  # fmt: skip
    used = np.fmax(table.state_bytes, table.reserved_memory_bytes)
    if np.isinf(limit).all() or used.sum() > limit.sum():
        return ()
    return (Resource("memory for state", used, limit),)


def _moves(table: KeyGroupTable, adapted: Adaptation) -> tuple[Move, ...]:
    """What has to move to nodes that are there; nodes still to come are planned for again then."""
    nodes, placement = adapted.cluster.nodes, adapted.plan.placement
    position = {node.name: place for place, node in enumerate(table.nodes) if not node.draining}
    to = np.array([position.get(name, NOWHERE) for name in nodes], dtype=np.int64)[placement]
    moved = np.flatnonzero((to != table.home) & (to != NOWHERE))
    return tuple(
        Move(table.component[group], int(table.key_group[group]), nodes[placement[group]])
        for group in moved.tolist()
    )


def _planned_collocation(table: KeyGroupTable, moves: tuple[Move, ...]) -> float:
    if not moves:
        return table.collocation
    position = {node.name: index for index, node in enumerate(table.nodes)}
    to = {(move.component, move.key_group): position[move.node] for move in moves}
    pairs = zip(table.component, table.key_group.tolist(), table.home.tolist(), strict=True)
    after = [to.get((component, group), home) for component, group, home in pairs]
    return table.traffic.collocation(np.array(after, dtype=np.int64))


def _left(table: KeyGroupTable, leaving: tuple[str, ...], moves: tuple[Move, ...]) -> int:
    """Key groups that are still on nodes to be removed when the moves are done."""
    going = {(move.component, move.key_group) for move in moves}
    nodes = [place for place, node in enumerate(table.nodes) if node.name in leaving]
    staying = np.flatnonzero(np.isin(table.home, nodes)).tolist()
    return sum((table.component[one], int(table.key_group[one])) not in going for one in staying)


def waits_for(record: AllocationRecord | None, moved: Outcome | None, change: int) -> str | None:
    """Why the number of executors must not change yet.

    Madsen et al. 2017 scale only what placement cannot solve.
    """
    if record is None:
        return None
    if change != 0 and record.holds_scaling:
        return record.holds_scaling
    if change < 0 and record.left_on_leaving:
        names = ", ".join(record.leaving)
        return f"{record.left_on_leaving} key groups have yet to leave {names} before it is removed"
    if change < 0 and moved is not None and not moved.done:
        return "the executors to be removed still hold key groups"
    if change < 0 and moved is not None:
        return "key groups moved in this period; executors leave in the next"
    return None
