"""One way to put a loop together, for Spark and the simulator alike."""

import math
from collections.abc import Callable, Sequence

from penstock.config import Settings
from penstock.control.controlled import Controlled
from penstock.control.deciding import MOST_REMEMBERED
from penstock.control.foresight import Foresight
from penstock.control.forms import Forms
from penstock.control.from_settings import (
    allocating_of,
    batch_interval_of,
    last_resort_of,
    policy_of,
    schedule_of,
    shadow_policies,
)
from penstock.control.guards.guard import Guard
from penstock.control.guards.standard import standard_guards
from penstock.control.loop import Loop
from penstock.control.ports import Clock, History
from penstock.control.rooms import Rooms
from penstock.control.step import Step
from penstock.model.decision import USUAL_SHARE, Limits
from penstock.scaling.policies.policy import ScalingPolicy

_LOOKS_BACK = ("window_s", "scale_down_window_s", "idle_timeout_s")  # options of policies


def planned_limits(
    settings: Settings, least: int, most: int, max_latency_s: float, share: float = USUAL_SHARE
) -> Limits:
    """Limits in processors; what is planned for is a share of the latency bound.

    `share` is what the topology asks for, and holds where the settings do not say otherwise.
    """
    wanted = share if settings.share is None else settings.share
    return Limits(least, most, settings.aim * max_latency_s, wanted)


def rooms_for(
    settings: Settings,
    controlled: Controlled,
    *,
    policy: ScalingPolicy | None = None,
    guards: Sequence[Guard] | None = None,
) -> Rooms:
    """The rooms that the settings ask for; a policy or guards that are given replace theirs."""
    slots, bound_s = controlled.actuator.slots_per_executor(), controlled.limits.max_latency_s
    return Rooms(
        policy=policy if policy is not None else policy_of(settings, slots),
        guards=guards if guards is not None else standard_guards(settings, slots),
        shadows=shadow_policies(settings, slots),
        foresight=Foresight(settings.foresight_s),
        allocating=allocating_of(settings),
        last_resort=last_resort_of(settings, controlled.cheaper_forms, bound_s),
        batch_interval=batch_interval_of(settings, bound_s),
        forms=Forms(controlled.forms, bound_s, controlled.form_costs) if controlled.forms else None,
        schedule=schedule_of(settings),
    )


def assemble_loop(
    settings: Settings,
    controlled: Controlled,
    rooms: Rooms,
    *,
    clock: Clock,
    history: History,
    on_step: Callable[[Step], None] | None = None,
) -> Loop:
    """The loop over what is controlled, at the pace of the settings."""
    return Loop(
        controlled,
        rooms,
        clock=clock,
        history=history,
        period_s=settings.period_s,
        window=_kept(settings, [rooms.policy, *rooms.shadows]),
        dry_run=settings.dry_run,
        on_step=on_step,
    )


def _kept(settings: Settings, policies: Sequence[ScalingPolicy]) -> int:
    """Observations to keep: what was asked for, and no less than a policy looks back on."""
    back_s = [getattr(policy, name, None) or 0.0 for policy in policies for name in _LOOKS_BACK]
    longest = math.ceil(max(back_s, default=0.0) / settings.period_s) + 1
    return max(settings.window, min(longest, MOST_REMEMBERED))
