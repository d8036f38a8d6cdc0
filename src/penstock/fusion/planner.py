"""Choosing components by a named algorithm: the decision of this room."""

from collections.abc import Sequence
from typing import Literal, get_args

from penstock.fusion.costs import Costs, FusionLimits, FusionPlan
from penstock.fusion.greedy import greedy
from penstock.fusion.members import Members
from penstock.fusion.mwsc import mwsc
from penstock.fusion.mwsc_greedy import mwsc_greedy
from penstock.fusion.mwsc_literal import mwsc_literal
from penstock.fusion.sparse_cut import sparse_cut
from penstock.model.decision import Decision

Algorithm = Literal["mwsc", "mwsc-greedy", "mwsc-literal", "greedy", "sparse-cut", "none"]
ALGORITHMS: tuple[Algorithm, ...] = get_args(Algorithm)


def decide_fusion(
    costs: Costs, algorithm: Algorithm, limits: FusionLimits | None = None
) -> Decision[FusionPlan]:
    """A plan by the algorithm, with reasons; infeasible when an operator alone exceeds beta."""
    limits = limits or FusionLimits()
    components, bound, note = _components(costs, algorithm, limits)
    if algorithm not in ("mwsc", "none") and _above_beta(costs, components, limits):
        # Moves of one operator, covers and cuts may miss a plan within beta that exists.
        other = list(mwsc(costs, limits).components)
        if _above_beta(costs, other, limits) < _above_beta(costs, components, limits):
            components, note = other, f"{note}; that exceeds beta, so this is the plan of mwsc"
    plan = costs.plan(components, bound)
    return Decision(plan, _reasons(costs, algorithm, plan, note), _infeasible(plan, limits))


def _components(
    costs: Costs, algorithm: Algorithm, limits: FusionLimits
) -> tuple[list[Members], float | None, str]:
    match algorithm:
        case "mwsc":
            partition = mwsc(costs, limits)
            return list(partition.components), partition.lower_bound, partition.note
        case "mwsc-greedy":
            return mwsc_greedy(costs, limits), None, "greedy set cover of enumerated components"
        case "mwsc-literal":
            note = "set cover with the paper's weights, which favour few components"
            return mwsc_literal(costs, limits), None, note
        case "greedy":
            return greedy(costs, limits), None, "moved operators while the cost fell"
        case "sparse-cut":
            components, note = sparse_cut(costs, limits)
            return components, None, note
        case "none":
            return [1 << p for p in range(costs.graph.size)], None, "every operator by itself"


def _above_beta(costs: Costs, components: Sequence[Members], limits: FusionLimits) -> int:
    if limits.beta is None:
        return 0
    return int((costs.adaptation(components) > limits.beta).sum())


def _reasons(costs: Costs, algorithm: str, plan: FusionPlan, note: str) -> tuple[str, ...]:
    total = costs.graph.total_rows
    apart = costs.total([1 << p for p in range(costs.graph.size)])
    saved = 1 - plan.communication_cost / total if total > 0 else 0.0
    lines = [
        f"{algorithm}: {note}.",
        f"{costs.graph.size} operators -> {len(plan.components)} components: cost {apart:.6g} -> "
        f"{plan.cost:.6g} rows, {saved:.1%} of {total:.6g} rows no longer sent between operators, "
        f"{plan.adaptation_cost:.6g} rows of state moved.",
    ]
    if plan.gap is not None:
        lines.append(
            f"no plan costs less than {plan.lower_bound:.6g} rows: the gap is {plan.gap:.2%} of "
            "the cost."
        )
    return tuple(lines)


def _infeasible(plan: FusionPlan, limits: FusionLimits) -> str | None:
    if limits.beta is None:
        return None
    over = [c for c in plan.components if c.adaptation_cost > limits.beta]
    if not over:
        return None
    worst = max(over, key=lambda component: component.adaptation_cost)
    return (
        f"beta is {limits.beta:g}, but {' + '.join(worst.operators)} alone would move "
        f"{worst.adaptation_cost:g} rows of state; raise beta to at least that."
    )
