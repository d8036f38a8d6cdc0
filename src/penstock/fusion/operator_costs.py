"""What each operator of a component costs, from the component's work and its operators' rows.

Operators of one component run in the same tasks, so only their work together is measured. Over
periods in which they get rows in other proportions,

    work_t = sum_i cost_i rows_it

tells their costs apart: least squares with costs of at least 0, drawn to an even cost of a row
where the periods do not tell (all proportions alike: every row of every operator costs the same).
"""

import math
from collections.abc import Sequence

import numpy as np

from penstock.model.observation import Floats, Observation

PULL = 0.01  # to the even cost, as a share of what the periods say; noise moves costs little


def operator_costs_s(rows: Floats, work_s: Floats) -> Floats:
    """Processor-seconds for each row of each operator; `rows` has a line for each period.

    >>> rows = np.array([[100.0, 50.0], [100.0, 10.0], [200.0, 150.0]])
    >>> operator_costs_s(rows, rows @ np.array([0.001, 0.01])).round(4).tolist()
    [0.001, 0.01]
    """
    total = float(rows.sum())
    if not total > 0:
        return np.full(rows.shape[1], np.nan)
    even = float(work_s.sum()) / total
    free = np.arange(rows.shape[1])
    costs = np.zeros(rows.shape[1])
    size = np.sqrt((rows**2).sum(axis=0)).mean()
    while len(free):
        pull = PULL * size * np.eye(len(free))
        design = np.vstack([rows[:, free], pull])
        wanted = np.concatenate([work_s, np.full(len(free), PULL * size * even)])
        found, *_ = np.linalg.lstsq(design, wanted, rcond=None)
        if (found >= 0).all():
            costs[free] = found
            break
        free = free[found >= 0]
    return costs


def costs_by_operator(window: Sequence[Observation]) -> dict[str, float]:
    """Processor-seconds for each row of every operator whose component was measured."""
    found: dict[str, float] = {}
    components = {one.name: one.operators for seen in window for one in seen.components}
    for name, operators in components.items():
        rows, work_s = _measured(window, name, operators)
        if len(rows):
            costs = operator_costs_s(np.array(rows), np.array(work_s))
            found |= dict(zip(operators, costs.tolist(), strict=True))
    return found


def _measured(
    window: Sequence[Observation], component: str, operators: tuple[str, ...]
) -> tuple[list[list[float]], list[float]]:
    """Rows of each operator and work of all, of the periods in which both are known."""
    rows, work_s = [], []
    for seen in window:
        rates = {one.name: one.arrival_rate_per_s for one in seen.operators}
        came = [rates.get(name, math.nan) * seen.period_s for name in operators]
        for one in seen.components:
            if one.name == component and one.busy_s > 0 and all(map(math.isfinite, came)):
                rows.append(came)
                work_s.append(one.busy_s)
    return rows, work_s
