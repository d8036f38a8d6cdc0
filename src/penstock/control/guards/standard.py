"""The guards that the options of a run ask for."""

from penstock.config import Settings
from penstock.control.guards.basic import (
    BacklogFirst,
    Bounds,
    Cooldown,
    Guard,
    LargestStep,
    NeedsObservation,
)
from penstock.control.guards.quotas import ExcludedTimes, Quota
from penstock.control.guards.steadiness import CatchUp, ScaleDownWindow, UtilisationBand
from penstock.model.day_spans import read_spans

A_DAY_S = 86_400.0  # a backlog that may take as long needs no processors of its own


def standard_guards(settings: Settings, slots_per_executor: int) -> tuple[Guard, ...]:
    """In the order they are applied; the last word is with those that hold."""
    guards: list[Guard] = [
        *([CatchUp(settings.catch_up_s)] if settings.catch_up_s < A_DAY_S else []),
        ScaleDownWindow(settings.scale_down_window_s),
        UtilisationBand(settings.utilisation_low, settings.utilisation_high),
        Bounds(),
        LargestStep(
            out_processors=settings.step_out * slots_per_executor,
            in_processors=settings.step_in * slots_per_executor,
        ),
        Cooldown(out_s=settings.cooldown_out_s, in_s=settings.cooldown_in_s),
        NeedsObservation(stale_after_s=settings.stale_after_periods * settings.period_s),
        BacklogFirst(),
    ]
    if settings.quota_executor_s > 0:
        quota_s = settings.quota_executor_s * slots_per_executor
        guards.append(Quota(quota_s, settings.quota_window_s))
    spans = read_spans(settings.excluded_times, "excluded-times")
    if spans:
        guards.append(ExcludedTimes(spans))
    return tuple(guards)
