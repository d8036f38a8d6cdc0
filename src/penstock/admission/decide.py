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

    Infeasible when a stream needs more than a lane has; it then has a lane to itself.
    """
    named = numbered(problem.streams, problem.lanes) if names is None else names
    situation = Situation(problem, strategy.believe(problem))
    plan = assign_streams(situation, strategy)
    return Decision(plan, reasons_for(situation, plan, named), _infeasible(situation, named))


def _infeasible(situation: Situation, names: Names) -> str | None:
    oversize = np.flatnonzero(situation.size > FULL)
    if len(oversize) == 0:
        return None
    need = situation.outlook.needed_rate_per_s
    worst = int(oversize[np.argmax(need[oversize])])
    return (
        f"{len(oversize)} of {situation.problem.streams} streams need more than a lane's "
        f"{situation.problem.lane_capacity_per_s:g} per s, most of all {names.streams[worst]!r} "
        f"with {need[worst]:g}; split them or raise lane_capacity."
    )
