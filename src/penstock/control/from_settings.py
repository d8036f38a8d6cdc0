"""What the settings of a run ask for: its policies, its last resort, and what else decides."""

from dataclasses import replace
from typing import Any, cast

from penstock.allocation.albic import AlbicOptions
from penstock.allocation.assignment import Objective
from penstock.config import Settings
from penstock.control.allocating import Allocating, AllocationRules
from penstock.control.batch_interval import BatchInterval
from penstock.control.last_resort import LastResort
from penstock.control.resolved_settings import options_for, shadow_names
from penstock.errors import InvalidInput
from penstock.fusion.proposal import ProposalRules
from penstock.model.schedule import Schedule, read_schedule
from penstock.scaling.last_resort import LastResortRules
from penstock.scaling.policies.policy import ScalingPolicy
from penstock.scaling.policies.registry import has_option, policy

LONGEST_INTERVAL_S = 3600.0
_PLANS_SHARE = "promise"  # the others plan for a mean, or for no latency at all


def policy_of(settings: Settings, slots: int | None = None) -> ScalingPolicy:
    """The policy, or a sentence that lists the known ones.

    `slots` are the processors of one executor, where the settings do not say it.

    >>> policy_of(Settings(policy="ds2")).name
    'ds2'
    """
    return _with_options(settings.policy, settings, slots)


def settings_of(name: str, settings: Settings) -> Settings:
    """The settings for one of several policies, without what only the others go by."""
    return replace(settings, policy=name, aim=1.0 if name == _PLANS_SHARE else settings.aim)


def shadow_policies(settings: Settings, slots: int | None = None) -> tuple[ScalingPolicy, ...]:
    """Policies that decide beside the acting one without acting, in the order they are named.

    >>> [policy.name for policy in shadow_policies(Settings(shadow="drs, ds2"))]
    ['drs', 'ds2']
    """
    named = shadow_names(settings.shadow, settings.policy)
    return tuple(_with_options(name, settings, slots) for name in named)


def _with_options(name: str, settings: Settings, slots: int | None) -> ScalingPolicy:
    if name == _PLANS_SHARE and settings.aim != 1:
        raise InvalidInput(
            f"aim is {settings.aim:g}, which is for policies that plan for a mean latency; {name} "
            "plans for the share: leave aim out, or choose another policy (drs)."
        )
    from_the_run: dict[str, Any] = {
        # A query's own trigger, or a scenario's, may be longer than an option allows.
        "trigger_interval_s": min(settings.batch_interval_s or 0.0, LONGEST_INTERVAL_S),
        "step": slots or settings.slots,  # nothing smaller than an executor can be had
    }
    wanted = {k: v for k, v in from_the_run.items() if has_option(name, k)}
    return policy(name, **wanted | options_for(name, settings))


def last_resort_of(
    settings: Settings, variants: tuple[str, ...], max_latency_s: float
) -> LastResort | None:
    """The last resort; None where the user allows none: no cheaper form, and nothing to shed."""
    rules = LastResortRules(
        variants, settings.shed_at_most or 0.0, settings.resort_after_s,
        settings.resort_undo_after_s,
    )  # fmt: skip
    return LastResort(rules, max_latency_s) if rules.allows_anything else None


def batch_interval_of(settings: Settings, max_latency_s: float) -> BatchInterval | None:
    """What chooses the interval of batches; None where they go as the settings say."""
    return BatchInterval(max_latency_s) if settings.adapt_interval else None


def schedule_of(settings: Settings) -> Schedule | None:
    """Least and most executors by time; None where the limits always are the same."""
    return None if settings.schedule is None else read_schedule(settings.schedule, "schedule")


def proposal_rules_of(settings: Settings) -> ProposalRules:
    """How plans of the slow loop are priced."""
    return ProposalRules(
        settings.fusion_beta, settings.fusion_capacity, settings.fusion_tolerance
    )  # fmt: skip


def allocating_of(settings: Settings) -> Allocating | None:
    """What places key groups; None where it is off."""
    if settings.allocation is None:
        return None
    return Allocating(
        AllocationRules(
            settings.allocation,
            settings.allocation_migrations,
            settings.allocation_cost_s,
            settings.allocation_tolerance,
            settings.allocation_time_s,
            objective=cast(Objective, settings.allocation_objective),
            albic=AlbicOptions(
                settings.albic_distance,
                settings.albic_partition_load,
                settings.albic_partition_step,
                pairs_per_round=settings.albic_pairs,
            ),
        )
    )
