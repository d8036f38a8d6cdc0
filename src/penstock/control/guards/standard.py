"""The guards that the options of a run ask for."""

import math
from collections.abc import Iterator

from penstock.config import Settings
from penstock.config.settings import USUAL_CATCH_UP_S, USUAL_SCALE_DOWN_WINDOW_S
from penstock.control.guards.guard import Guard
from penstock.control.guards.limits import (
    BacklogFirst,
    Bounds,
    Cooldown,
    ExcludedTimes,
    LargestStep,
    MemoryFirst,
    NeedsObservation,
    Quota,
)
from penstock.control.guards.stability import CatchUp, ScaleDownWindow, UtilisationBand
from penstock.model.day_spans import read_spans


def standard_guards(settings: Settings, slots_per_executor: int) -> tuple[Guard, ...]:
    """In the order they are applied; the last word is with those that hold."""
    return (
        *_raising(settings),
        *_stabilising(settings),
        Bounds(),
        LargestStep(
            out_processors=_processors(settings.step_out, slots_per_executor),
            in_processors=_processors(settings.step_in, slots_per_executor),
        ),
        Cooldown(out_s=settings.cooldown_out_s or 0.0, in_s=settings.cooldown_in_s or 0.0),
        NeedsObservation(stale_after_s=settings.stale_after_periods * settings.period_s),
        BacklogFirst(),
        MemoryFirst(),
        *_agreed(settings, slots_per_executor),
    )


def _processors(executors: int | None, slots_per_executor: int) -> float:
    return math.inf if executors is None else executors * slots_per_executor


def _raising(settings: Settings) -> Iterator[Guard]:
    within_s = settings.usual_or_given(settings.catch_up_s, USUAL_CATCH_UP_S)
    if within_s is not None:
        yield CatchUp(within_s)


def _stabilising(settings: Settings) -> Iterator[Guard]:
    window_s = settings.usual_or_given(settings.scale_down_window_s, USUAL_SCALE_DOWN_WINDOW_S)
    if window_s is not None:
        yield ScaleDownWindow(window_s)
    if settings.utilisation_low is not None and settings.utilisation_high is not None:
        yield UtilisationBand(settings.utilisation_low, settings.utilisation_high)


def _agreed(settings: Settings, slots_per_executor: int) -> Iterator[Guard]:
    if settings.quota_executor_s is not None:
        yield Quota(settings.quota_executor_s * slots_per_executor, settings.quota_window_s)
    if settings.excluded_times is not None:
        yield ExcludedTimes(read_spans(settings.excluded_times, "excluded-times"))
