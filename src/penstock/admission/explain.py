"""Why an admission plan is as it is: a line for each thing that changed, the worst lanes first."""

from collections.abc import Iterator

import numpy as np

from penstock.admission.algorithm1 import AdmissionPlan
from penstock.admission.names import Names
from penstock.admission.problem import NEW, Situation
from penstock.admission.ticks import LANE
from penstock.model.observation import Ints

MOST_LINES = 5  # of one kind; the rest is counted


def reasons_for(situation: Situation, plan: AdmissionPlan, names: Names) -> tuple[str, ...]:
    """What changed, from what, to what, because of which numbers."""
    problem = situation.problem
    had = problem.lane[problem.lane != NEW]
    lines = [
        f"lanes with streams: {len(np.unique(had))} -> {plan.lanes_in_use} for {problem.streams} "
        f"streams that need {plan.total_rate_per_s:g} per s{_backlog(plan)}; a lane "
        f"carries {problem.lane_capacity_per_s:g}, and no plan has fewer than {plan.lower_bound}",
        *_overloads(situation, plan, names),
    ]
    if len(had) < problem.streams:
        lines.append(f"new streams admitted: {problem.streams - len(had)}")
    lines.extend(_redirections(situation, plan, names))
    if plan.new_lanes:
        lines.append(f"lanes opened, as no other had room: {plan.new_lanes}")
    if plan.drained.any():
        lines.append(
            f"lanes drained: {_some(np.flatnonzero(plan.drained), names)}; the others then are at "
            f"most {problem.drain_below:.0%} full on average"
        )
    if len(plan.retired):
        lines.append(f"lanes retired without streams: {_some(plan.retired, names)}")
    return tuple(lines)


def _backlog(plan: AdmissionPlan) -> str:
    waits = plan.backlog_per_s
    return f", and {waits:g} to serve what waits within the bound" if waits > 0 else ""


def _overloads(situation: Situation, plan: AdmissionPlan, names: Names) -> Iterator[str]:
    problem = situation.problem
    latency_s, late, full = situation.latency_s, situation.late, situation.too_full
    troubled = np.flatnonzero(plan.overloaded & (late | full))
    worst = troubled[np.argsort(-situation.load[troubled], kind="stable")]
    for row in worst[:MOST_LINES].tolist():
        causes = []
        if full[row]:
            queued = situation.queued[row]
            also = f" and its queue {queued / LANE:.1%}" if queued > 0 else ""
            load = situation.stream_load[row] / LANE
            causes.append(f"its streams need {load:.1%}{also} of its capacity")
        if late[row]:
            causes.append(
                f"its queue says {latency_s[row]:.3g} s of {problem.latency_bound_s:g} s allowed"
            )
        yield f"lane {names.lanes[row]!r} is overloaded: {' and '.join(causes)}"
    if len(worst) > MOST_LINES:
        yield f"{len(worst) - MOST_LINES} further lanes are overloaded"


def _redirections(situation: Situation, plan: AdmissionPlan, names: Names) -> Iterator[str]:
    if len(plan.redirected) == 0:
        return
    outlook, before = situation.outlook, situation.problem.lane
    new, known = names.of_new(plan.new_lanes), plan.lanes_before
    for row in _largest(plan.redirected, situation.size):
        to = int(plan.lane[row])
        target = names.lanes[to] if to < known else new[to - known]
        yield (
            f"stream {names.streams[row]!r}: lane {names.lanes[int(before[row])]!r} -> "
            f"{target!r}; it needs {outlook.needed_rate_per_s[row]:g} per s and is expected to "
            f"change by {outlook.rise_per_s[row]:+g}"
        )
    if len(plan.redirected) > MOST_LINES:
        yield f"{len(plan.redirected) - MOST_LINES} further streams redirected"


def _largest(rows: Ints, size: Ints) -> list[int]:
    if len(rows) <= MOST_LINES:
        return [int(row) for row in rows]
    most = np.argpartition(-size[rows], MOST_LINES)[:MOST_LINES]
    return [int(row) for row in np.sort(rows[most])]


def _some(rows: Ints, names: Names) -> str:
    shown = ", ".join(repr(names.lanes[row]) for row in rows[:MOST_LINES].tolist())
    return shown + (f" and {len(rows) - MOST_LINES} more" if len(rows) > MOST_LINES else "")
