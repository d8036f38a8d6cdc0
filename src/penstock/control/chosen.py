"""The policies that the options of a run name, with the options that concern them."""

from dataclasses import fields

from penstock.config import Settings
from penstock.control.allocating import Allocating, AllocationRules
from penstock.control.batch_interval import BatchInterval
from penstock.control.last_resort import LastResort
from penstock.errors import InvalidInput
from penstock.scaling.last_resort import ResortRules
from penstock.scaling.policies.policy import ScalingPolicy
from penstock.scaling.policies.registry import POLICIES, policy

NO_SHADOW = "none"
ALL_OTHERS = "all"


def chosen_policy(settings: Settings, slots: int | None = None) -> ScalingPolicy:
    """The policy, or a sentence that lists the known ones.

    `slots` are the processors of one executor, where the settings do not say it.

    >>> chosen_policy(Settings(threshold_max=0.9)).name
    'incremental'
    """
    return _with_options(settings.policy, settings, slots)


def shadow_policies(settings: Settings, slots: int | None = None) -> tuple[ScalingPolicy, ...]:
    """Policies that decide beside the chosen one without acting, in the order they are named.

    >>> [policy.name for policy in shadow_policies(Settings(shadow="drs, ds2"))]
    ['drs', 'ds2']
    """
    if settings.shadow.strip() == NO_SHADOW:
        return ()
    names = [name.strip() for name in settings.shadow.split(",")]
    if names == [ALL_OTHERS]:
        names = [name for name in sorted(POLICIES) if name not in (settings.policy, "static")]
    if len(set(names)) < len(names):
        raise InvalidInput(f"shadow is {settings.shadow!r}; name each policy once.")
    if settings.policy in names:
        raise InvalidInput(
            f"shadow is {settings.shadow!r}; {settings.policy} is the policy that acts already."
        )
    for name in names:
        if name not in POLICIES:
            known = ", ".join(sorted(POLICIES))
            raise InvalidInput(
                f"shadow names {name!r}; known: {known}, {ALL_OTHERS} or {NO_SHADOW}."
            )
    return tuple(_with_options(name, settings, slots) for name in names)


def _with_options(name: str, settings: Settings, slots: int | None) -> ScalingPolicy:
    offered = {
        "min_ratio": settings.threshold_min,
        "max_ratio": settings.threshold_max,
        "window_s": settings.trend_window_s,
        "trigger_interval_s": settings.batch_interval_s,
        "step": slots or settings.slots,  # nothing smaller than an executor can be had
    }
    kind = POLICIES.get(name)
    wanted = {field.name for field in fields(kind) if field.init} if kind is not None else set()
    return policy(name, **{k: v for k, v in offered.items() if k in wanted})


def chosen_last_resort(
    settings: Settings, variants: tuple[str, ...], max_latency_s: float
) -> LastResort | None:
    """The last resort; None where the user allows none: no cheaper form, and nothing to shed."""
    rules = ResortRules(
        variants, settings.shed_at_most, settings.resort_after_s, settings.resort_calm_s
    )
    return LastResort(rules, max_latency_s) if rules.allows_anything else None


def chosen_batch_interval(settings: Settings, max_latency_s: float) -> BatchInterval | None:
    """What chooses the interval of batches; None where they go as the settings say."""
    return BatchInterval(max_latency_s) if settings.adapt_interval else None


def chosen_allocating(settings: Settings) -> Allocating | None:
    """What places key groups; None where the settings say that nothing does."""
    if settings.allocation == "none":
        return None
    return Allocating(
        AllocationRules(
            settings.allocation,
            settings.allocation_migrations,
            settings.allocation_cost_s,
            settings.allocation_tolerance,
            settings.allocation_time_s,
        )
    )
