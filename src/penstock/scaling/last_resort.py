"""The last resort: less work for each row, then fewer rows.

The Custom Locally step of Kotto-Kombi 2018, ch. 4 s. 1.3.4.

When every processor that may be had is in use and the bound is still missed, operators go over to
the cheaper form that the user gave them, the heaviest first; when that is not enough, a share of
the rows is shed, never more than the user allowed. Both are undone when the load falls, in the
reverse order: rows that are shed are lost for good, while a cheaper form still answers for every
row, so shedding comes last and goes first.

Differs from Kotto-Kombi 2018: shedders stand at the sources only, where a row has cost nothing yet,
not between operators (Tatbul et al. place them by the error of each query).
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from penstock.model.decision import Decision

TARGET = 0.8  # of the processors: as much load as is taken on when rows are shed
RELAXED = 0.65  # less than the target: what is undone must not be wanted again at once
STEP = 0.05  # shares are multiples of it
CONFIDENCE = 1.96  # standard errors in a 95% interval


@dataclass(frozen=True)
class LastResortRules:
    """What the user allows; nothing by default."""

    variants: tuple[str, ...] = ()  # operators that have a cheaper form
    shed_at_most: float = 0.0  # of the rows
    after_s: float = 10.0  # the bound is missed for so long, at the limit, before a step
    undo_after_s: float = 30.0  # results are in time for so long before a step back

    @property
    def allows_anything(self) -> bool:
        """Whether there is a last resort at all."""
        return bool(self.variants) or self.shed_at_most > 0


@dataclass(frozen=True)
class LastResortPlan:
    """What is in use: operators in their cheaper form, in the order they went over; and a share."""

    cheaper: tuple[str, ...] = ()
    shed: float = 0.0

    @property
    def in_use(self) -> bool:
        """Whether anything is."""
        return bool(self.cheaper) or self.shed > 0


@dataclass(frozen=True)
class Situation:
    """What a step is decided on.

    Loads are in processors kept busy, without shedding. `late_for_s` counts while the bound is
    missed with all processors in use, `in_time_for_s` while it is kept.
    """

    processors: int
    load: float  # of all rows that arrive, in the forms that are in use; NaN: not known
    late_for_s: float = 0.0
    in_time_for_s: float = 0.0
    late: str = ""  # by what the bound is missed, with numbers
    behind_load: float = 0.0  # processors that working off what is late would keep busy
    full_load: Mapping[str, float] = field(default_factory=dict)  # if one form were undone
    loads: Mapping[str, float] = field(default_factory=dict)  # of operators' components


def decide_last_resort(
    now: LastResortPlan, situation: Situation, rules: LastResortRules
) -> Decision[LastResortPlan]:
    """One step further, one step back, or the same plan without a reason."""
    if math.isnan(situation.load):
        return Decision(now)
    if situation.late_for_s >= rules.after_s and situation.late:
        return _further(now, situation, rules)
    if now.in_use and situation.in_time_for_s >= rules.undo_after_s:
        return _back(now, situation)
    return Decision(now)


def _further(now: LastResortPlan, s: Situation, rules: LastResortRules) -> Decision[LastResortPlan]:
    why = f"{s.late} with all {s.processors} processors in use for {s.late_for_s:.0f} s"
    left = [name for name in rules.variants if name not in now.cheaper]
    if left:
        heaviest = max(left, key=lambda name: s.loads.get(name, 0.0))
        plan = LastResortPlan((*now.cheaper, heaviest), now.shed)
        load = s.loads.get(heaviest, math.nan)
        return Decision(plan, (f"{heaviest} in its cheaper form: {why}; its load is {load:.2f}",))
    if rules.shed_at_most <= 0:
        return Decision(now, (), f"{why}; nothing else is allowed")
    needed = _share_above(s.load + s.behind_load, TARGET * s.processors)
    # The load may be measured too low while everything waits: late rows say it is not enough.
    wanted = max(_rounded(now.shed + STEP), needed)
    share = min(wanted, rules.shed_at_most)
    short = f"{wanted:.0%} would be needed" if wanted > rules.shed_at_most + 1e-9 else None
    if share <= now.shed + 1e-9:
        return Decision(now, (), f"{why}; {now.shed:.0%} is shed, which is all that is allowed")
    said = (
        f"shed {now.shed:.0%} -> {share:.0%} of the rows: {why}; load {s.load:.2f}"
        f"{f' and {s.behind_load:.2f} behind' if s.behind_load > 0.005 else ''}, of which "
        f"{TARGET:.0%} of the processors can be taken on"
    )
    return Decision(LastResortPlan(now.cheaper, share), (said,), short)


def _back(now: LastResortPlan, s: Situation) -> Decision[LastResortPlan]:
    room = RELAXED * s.processors
    why = f"results are in time for {s.in_time_for_s:.0f} s"
    if now.shed > 0:
        share = min(_share_above(s.load, room), now.shed)
        if share > now.shed - 1e-9:
            return Decision(now)
        said = (
            f"shed {now.shed:.0%} -> {share:.0%} of the rows: {why}, and what is kept of a load of "
            f"{s.load:.2f} fits into {RELAXED:.0%} of {s.processors} processors"
        )
        return Decision(LastResortPlan(now.cheaper, share), (said,))
    last = now.cheaper[-1]
    full = s.full_load.get(last, math.nan)
    if not full <= room:
        return Decision(now)
    said = (
        f"{last} in its full form again: {why}, and its load in all would be {full:.2f}, at most "
        f"{RELAXED:.0%} of {s.processors} processors"
    )
    return Decision(LastResortPlan(now.cheaper[:-1], 0.0), (said,))


def _share_above(load: float, room: float) -> float:
    """The share of rows to shed so that the rest fits, in whole steps."""
    if load <= room:
        return 0.0
    return min(1.0, _rounded(1 - room / load))


def _rounded(share: float) -> float:
    return round(math.ceil(share / STEP - 1e-9) * STEP, 6)


def relative_error(shed: float, rows: float, variation: float = 0.0) -> float:
    """Half of the 95% interval of a count or sum over `rows` rows, relative to it.

    Each row is kept with probability q = 1 - shed, independently of its content, and a count of n
    kept rows stands for n / q. Its variance is N (1 - q) / q, so its relative standard error is
    sqrt((1 - q) (1 + c^2) / (q N)), where c is the coefficient of variation of what is summed
    (0 for a count).

    >>> round(relative_error(0.2, 1000), 4)
    0.031
    """
    if not 0 < shed < 1:
        return 0.0 if shed == 0 else math.inf
    if not rows > 0:
        return math.nan
    return CONFIDENCE * math.sqrt(shed * (1 + variation**2) / ((1 - shed) * rows))
