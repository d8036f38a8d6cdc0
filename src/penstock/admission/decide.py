"""An admission decision: the plan of a strategy with its reasons."""

import numpy as np

from penstock.admission.algorithm1 import AdmissionPlan, assign_streams
from penstock.admission.explain import reasons_for
from penstock.admission.names import Names, numbered
from penstock.admission.problem import AdmissionProblem, Situation
from penstock.admission.strategy import Strategy
from penstock.admission.ticks import FULL
from penstock.model.decision import Decision


def decide_admission(
    problem: AdmissionProblem, strategy: Strategy, names: Names | None = None
) -> Decision[AdmissionPlan]:
    """Streams to lanes for the next periods.

    Infeasible when a stream needs more than a lane has, which it then has to itself, or when a
    lane's queue takes longer than the bound whatever is placed elsewhere.
    """
    named = numbered(problem.streams, problem.lanes) if names is None else names
    situation = Situation(problem, strategy.believe(problem))
    plan = assign_streams(situation, strategy)
    return Decision(plan, reasons_for(situation, plan, named), _infeasible(situation, named))


def _infeasible(situation: Situation, names: Names) -> str | None:
    said = [_oversize(situation, names), _late_anyway(situation, names)]
    return " ".join(one for one in said if one is not None) or None


def _oversize(situation: Situation, names: Names) -> str | None:
    oversize = np.flatnonzero(situation.size > FULL)
    if len(oversize) == 0:
        return None
    need, backlog = situation.need_per_s, situation.backlog_per_s
    worst = int(oversize[np.argmax(need[oversize])])
    waits = f", of which {backlog[worst]:g} for rows that wait" if backlog[worst] > 0 else ""
    return (
        f"{len(oversize)} of {situation.problem.streams} streams need more than a lane's "
        f"{situation.problem.lane_capacity_per_s:g} per s, most of all {names.streams[worst]!r} "
        f"with {need[worst]:g}{waits}; split them or raise lane_capacity."
    )


def _late_anyway(situation: Situation, names: Names) -> str | None:
    late = np.flatnonzero(situation.queued > FULL)
    if len(late) == 0:
        return None
    worst = int(late[np.argmax(situation.latency_s[late])])
    return (
        f"{len(late)} of {situation.problem.lanes} lanes are late whatever is moved, most of all "
        f"{names.lanes[worst]!r}: its queue takes {situation.latency_s[worst]:.3g} s of "
        f"{situation.problem.latency_bound_s:g} s allowed."
    )
