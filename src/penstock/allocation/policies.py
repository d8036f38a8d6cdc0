"""The allocation policies by name, each answered as a decision with its reasons."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from penstock.allocation.albic import AlbicOptions, albic
from penstock.allocation.assignment import Assignment, Objective, with_cpu
from penstock.allocation.bound import load_distance_bound
from penstock.allocation.budget import SearchBudget
from penstock.allocation.cola import cola
from penstock.allocation.explain import infeasibility, reasons
from penstock.allocation.flux import flux
from penstock.allocation.framework import Cluster
from penstock.allocation.potc import potc
from penstock.allocation.problem import AllocationProblem
from penstock.allocation.resource_aware import resource_aware
from penstock.allocation.solver import Allocation, allocation_of, solve
from penstock.allocation.traffic import Traffic
from penstock.errors import InvalidInput
from penstock.model.decision import Decision

POLICIES = ("milp", "albic", "flux", "cola", "potc", "resource-aware")
WITHOUT_BUDGET = ("cola", "potc")
HASHES = 0  # seed of PoTC's hash functions
MOST_ASSIGNED = 3_000  # key groups of the policy resource-aware
FULL_LOAD = 100.0  # of a node of capacity 1, in the paper's percentage points


@dataclass(frozen=True)
class AllocationContext:
    """Everything a policy may look at; `groups` names the key groups."""

    cluster: Cluster
    groups: Sequence[str]
    traffic: Traffic
    max_load: float = FULL_LOAD
    albic: AlbicOptions = field(default_factory=AlbicOptions)
    objective: Objective = "resource"  # of the policy resource-aware


def decide(
    policy: str, context: AllocationContext, budget: SearchBudget, rng: np.random.Generator
) -> Decision[Allocation]:
    """Where each key group should live, by one of `POLICIES`."""
    problem, nodes = context.cluster.problem, context.cluster.nodes
    if policy in WITHOUT_BUDGET:
        problem = replace(problem, max_migration_cost=math.inf)
    more: list[str] = []
    if policy == "milp":
        allocation = solve(problem, budget, rng)
    elif policy == "albic":
        allocation, more = _albic(problem, context, budget, rng)
    elif policy == "resource-aware":
        problem = with_cpu(problem, context.max_load)
        allocation, more = _resource_aware(problem, context, budget, rng)
    else:
        allocation, more = _baseline(policy, problem, context, rng)
    return Decision(
        allocation,
        (*reasons(problem, allocation, nodes), *more),
        infeasibility(problem, allocation.placement, nodes, context.max_load),
    )


def _albic(
    problem: AllocationProblem,
    context: AllocationContext,
    budget: SearchBudget,
    rng: np.random.Generator,
) -> tuple[Allocation, list[str]]:
    answer = albic(problem, context.traffic, context.albic, budget, rng)
    names = context.groups
    lines = [f"{names[one]} and {names[other]} are put together" for one, other in answer.joined]
    old = context.traffic.collocation(problem.home)
    new = context.traffic.collocation(answer.allocation.placement)
    if not math.isnan(new):
        lines.append(f"collocation {old:.4g} -> {new:.4g} of all traffic")
    return answer.allocation, lines


def _resource_aware(
    problem: AllocationProblem,
    context: AllocationContext,
    budget: SearchBudget,
    rng: np.random.Generator,
) -> tuple[Allocation, list[str]]:
    if len(problem.load) > MOST_ASSIGNED:
        raise InvalidInput(
            f"key_groups has {len(problem.load)} entries; the policy resource-aware compares each "
            f"two of them and takes at most {MOST_ASSIGNED}."
        )
    assignment = Assignment(problem, context.traffic, context.objective)
    placement = resource_aware(assignment, budget, rng)
    usage = assignment.usage(placement)
    line = (
        f"objective {context.objective}: {np.count_nonzero(usage)} of {len(usage)} nodes in use, "
        f"processors reserved {usage.min():.0%} to {usage.max():.0%}"
    )
    collocation = context.traffic.collocation(placement)
    if not math.isnan(collocation):
        line += f", {1 - collocation:.4g} of all traffic between nodes"
    return allocation_of(problem, placement, load_distance_bound(problem)), [line]


def _baseline(
    policy: str, problem: AllocationProblem, context: AllocationContext, rng: np.random.Generator
) -> tuple[Allocation, list[str]]:
    bound = load_distance_bound(problem)
    if policy == "flux":
        return allocation_of(problem, flux(problem), bound), []
    if policy == "cola":
        anew = cola(problem, context.traffic, rng)
        note = "COLA places anew, whatever the migrations cost"
        return allocation_of(problem, anew, bound), [note]
    # The same hashes in every period: other ones would move most key groups each time.
    choices = potc(problem, np.random.default_rng(HASHES), context.cluster.nodes)
    split = int(np.count_nonzero((choices.first_share > 0) & (choices.first_share < 1)))
    note = f"PoTC splits {split} key groups over two nodes; the one with more is given here"
    return allocation_of(problem, choices.majority(problem.home), bound), [note]
