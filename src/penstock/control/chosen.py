"""The policy that the options of a run name, with the options that concern it."""

from dataclasses import fields

from penstock.config import Settings
from penstock.scaling.policy import ScalingPolicy
from penstock.scaling.registry import POLICIES, policy


def chosen_policy(settings: Settings, slots: int | None = None) -> ScalingPolicy:
    """The policy, or a sentence that lists the known ones.

    `slots` are the processors of one executor, where the settings do not say it.

    >>> chosen_policy(Settings(threshold_max=0.9)).name
    'incremental'
    """
    offered = {
        "min_ratio": settings.threshold_min,
        "max_ratio": settings.threshold_max,
        "step": slots or settings.slots,  # nothing smaller than an executor can be had
    }
    kind = POLICIES.get(settings.policy)
    wanted = {field.name for field in fields(kind) if field.init} if kind is not None else set()
    return policy(settings.policy, **{k: v for k, v in offered.items() if k in wanted})
