"""The policy that the options of a run name, with the options that concern it."""

from dataclasses import fields

from penstock.config import Settings
from penstock.scaling.policy import ScalingPolicy
from penstock.scaling.registry import POLICIES, policy


def chosen_policy(settings: Settings) -> ScalingPolicy:
    """The policy, or a sentence that lists the known ones.

    >>> chosen_policy(Settings(threshold_max=0.9)).name
    'incremental'
    """
    offered = {"min_ratio": settings.threshold_min, "max_ratio": settings.threshold_max}
    kind = POLICIES.get(settings.policy)
    wanted = {field.name for field in fields(kind) if field.init} if kind is not None else set()
    return policy(settings.policy, **{k: v for k, v in offered.items() if k in wanted})
