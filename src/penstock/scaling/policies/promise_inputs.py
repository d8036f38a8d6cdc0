"""What `promise` reads from a window: the load ahead, what is starting."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from penstock.forecast.calendar import RateCalendar
from penstock.forecast.calendar_regression import CalendarRegression
from penstock.forecast.load_ahead import HALF_LIFE, LoadAhead, load_ahead
from penstock.forecast.paths import USUAL_FORECASTERS, Announced, Calendar, evenly
from penstock.model.decision import USUAL_START_UP_S
from penstock.model.observation import Floats, Observation
from penstock.model.start_up import after_start_up
from penstock.scaling.models.batch_course import Work
from penstock.scaling.policies.policy import ScalingContext
from penstock.scaling.policies.promise_costs import learn_costs

_RECENT = 60  # observations that say how long periods are
_MOST_MISSED = 30.0  # loads above what was planned for, over results that may be late
_LEAST_LEVEL = 0.5
_PRIOR = 2 * HALF_LIFE  # periods of just as many late as may be, before the first
_CLOCK = 0.1  # of a period, by which what is seen once a period may be off


@dataclass(frozen=True)
class Announcement:
    """What admission foresees, whichever forecaster is believed."""

    ahead_per_s: Floats  # at each planned step; NaN where nothing is foreseen
    overdue_per_s: float  # announced for longer than ahead, and still it did not come


@dataclass(frozen=True)
class PromiseInputs:
    """Everything a decision rests on."""

    ahead: LoadAhead
    announced: Announcement
    work: Work
    period_s: float
    lead: int  # periods until what is asked for in the next period could serve
    rates_per_s: Floats  # so far, the last one is of now
    live: int  # processors that take work now; one at least, as some will
    pending_s: float  # until those serve that were asked for before
    start_up_s: float
    catch_up_s: float  # within which what waits is worked off
    waiting_rows: float
    behind: bool  # whether more waits than the bound allows
    level: float  # probability with which the load stays below what is planned for

    @property
    def rate_per_s(self) -> float:
        """Now."""
        return float(self.rates_per_s[-1])


def read_promise_inputs(
    context: ScalingContext, interval_s: float, look_ahead_s: float, calendar: RateCalendar
) -> PromiseInputs | None:
    """The inputs; None while rate or cost is unknown."""
    window = context.window
    newest = context.newest
    if newest is None:
        return None
    recent = window[-_RECENT:]
    work = learn_costs(window, interval_s, context.limits.share)
    period_s = float(np.median([one.period_s for one in recent]))
    series = evenly([one.at_s for one in window], [_rate_per_s(one) for one in window], period_s)
    if work is None or len(series) == 0 or not math.isfinite(newest.arrival_rate_per_s):
        return None
    known_s = context.act_price.start_up_s
    start_up_s = USUAL_START_UP_S if known_s is None else known_s
    so_far_s = np.arange(1.0 - len(series), 1.0) * period_s + newest.at_s
    announced = _announced(window, so_far_s, period_s)
    ages_s = [one.rate_age_s for one in recent if math.isfinite(one.rate_age_s)]
    # What is announced is of now.
    age_s = float(np.median(ages_s)) if ages_s and not announced.rates_per_s else 0.0
    lead = periods_ahead(start_up_s, period_s, age_s)
    steps = planned_steps(lead, look_ahead_s / period_s)
    moments_s = np.arange(1.0 - len(series), steps[-1] + 1.0) * period_s + newest.at_s
    usual = tuple(calendar.usual_per_s(moments_s).tolist())
    forecasters = (*USUAL_FORECASTERS, Calendar(usual), CalendarRegression(usual), announced)
    level = planned_level(window, context.limits.share)
    ahead = load_ahead(series, steps, level, forecasters, lead)
    asked_s = context.last_change_s
    pending_s = max(0.0, asked_s + start_up_s - newest.at_s) if math.isfinite(asked_s) else 0.0
    # Not at once, where executors start at once: that would take infinitely many.
    catch_up_s = max(start_up_s, context.limits.max_latency_s)
    waiting = newest.backlog_rows if newest.backlog_rows > 0 else 0.0
    return PromiseInputs(
        ahead, _announcement(announced, series, steps), work, period_s, lead, series,
        max(1, newest.processors or context.current.processors), pending_s, start_up_s, catch_up_s,
        waiting,
        waiting > newest.arrival_rate_per_s * context.limits.max_latency_s,
        level,
    )  # fmt: skip


def periods_ahead(start_up_s: float, period_s: float, age_s: float) -> int:
    """Periods until what is asked for in the next period serves, from the newest rate on.

    Rates are means of periods, of which the newest ended `age_s` ago. A start-up is seen to take
    periods, but for the milliseconds by which the clock happened to tick.
    """
    ahead = (start_up_s + period_s + max(0.0, age_s)) / period_s
    return max(1, math.ceil(ahead - _CLOCK))


def _rate_per_s(seen: Observation) -> float:
    """As measured; NaN before the first batch was, when a rate of zero only says that none was."""
    rate = seen.arrival_rate_per_s
    return math.nan if rate == 0 and math.isnan(seen.offered_load) else rate


def planned_level(window: Sequence[Observation], share: float) -> float:
    """The load's quantile to plan for: lower where fewer were late than may be, and conversely.

    A load above its quantile makes only some results late, or none where executors are whole; so
    the level goes down while lateness stays below what the share allows (the feedback of adaptive
    conformal inference, Gibbs and Candes 2021), and up where more was late.
    """
    allowed = 1 - share
    counted = after_start_up(window)
    seen = [one.latency for one in counted if one.latency is not None and one.latency.count > 0]
    rows = np.array([float(one.count) for one in seen])
    late = np.array([1 - one.in_time_share for one in seen])
    # As if so many periods had been just as late as they may be: a few in time prove nothing, and
    # a level that falls sooner than errors are forgotten takes the only rise so far for chance.
    before = _PRIOR * float(rows.mean()) if seen else 1.0
    late_share = (float((rows * late).sum()) + before * allowed) / (float(rows.sum()) + before)
    spare = max(-1.0, 1 - late_share / allowed)
    factor = 1 + (_MOST_MISSED - 1) * spare if spare >= 0 else 1 / (1 - spare)
    return max(_LEAST_LEVEL, 1 - allowed * factor)


def _announced(window: Sequence[Observation], moments_s: Floats, period_s: float) -> Announced:
    """What admission foresaw at each moment of the series; nothing where it foresees nothing now.

    Periods are not all alike, so the series has moments of its own, more or fewer than the window.
    """
    horizons_s = [
        source.foreseen_horizon_s for source in window[-1].sources if source.foreseen_horizon_s
    ]
    if not horizons_s:
        return Announced((), 1)
    foreseen = [one.foreseen_rate_per_s for one in window]
    rates = np.interp(moments_s, [one.at_s for one in window], foreseen)
    return Announced(tuple(rates.tolist()), max(1, round(max(horizons_s) / period_s)))


def _announcement(announced: Announced, series: Floats, steps: tuple[int, ...]) -> Announcement:
    ahead = announced.paths(series, np.array(steps))[-1]
    # What was announced in each of the periods since had to come by now, the oldest of it before.
    since = announced.steps_ahead + 2
    lately = np.asarray(announced.rates_per_s[-since:])
    came = float(series[-since:].max())
    still = float(lately.min()) if len(lately) == since and np.isfinite(lately).all() else 0.0
    return Announcement(ahead, still if still > came else 0.0)


def planned_steps(lead: int, most: float) -> tuple[int, ...]:
    """Each step until `lead`, then fewer and fewer.

    >>> planned_steps(3, 24)
    (1, 2, 3, 4, 6, 9, 13, 19, 28)
    """
    steps = list(range(1, lead + 2))
    while steps[-1] < most:
        steps.append(math.ceil(1.5 * steps[-1] - 0.5))
    return tuple(steps)
