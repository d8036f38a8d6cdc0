"""The rooms that decide in a loop; those that a run does without are None."""

from collections.abc import Sequence
from dataclasses import dataclass

from penstock.control.allocating import Allocating
from penstock.control.batch_interval import BatchInterval
from penstock.control.foresight import Foresight
from penstock.control.forms import Forms
from penstock.control.guards.guard import Guard
from penstock.control.last_resort import LastResort
from penstock.model.schedule import Schedule
from penstock.scaling.policies.policy import ScalingPolicy


@dataclass(frozen=True, kw_only=True)
class Rooms:
    """`shadows` decide on the same observations as the policy, and only the history hears it."""

    policy: ScalingPolicy
    guards: Sequence[Guard] = ()
    shadows: Sequence[ScalingPolicy] = ()
    foresight: Foresight | None = None
    allocating: Allocating | None = None
    last_resort: LastResort | None = None
    batch_interval: BatchInterval | None = None
    forms: Forms | None = None
    schedule: Schedule | None = None
