"""A loop over fakes, told by keywords."""

from collections.abc import Sequence
from dataclasses import fields
from typing import Any

from contract.fakes import FakeClock, FakeHistory, FakePolicy
from penstock.control.controlled import Controlled
from penstock.control.loop import Loop
from penstock.control.rooms import Rooms
from penstock.model.decision import Limits

_ROOMS = {field.name for field in fields(Rooms)}
_CONTROLLED = {field.name for field in fields(Controlled)}


def loop_over(
    measurer: Any,
    actuator: Any,
    *,
    policy: Any = None,
    limits: Limits = Limits(1, 8, 5.0),  # noqa: B008 - frozen
    guards: Sequence[Any] = (),
    clock: Any = None,
    history: Any = None,
    period_s: float = 5.0,
    **more: Any,
) -> Loop:
    """The loop; fields of Controlled and Rooms, and options of Loop, may all be given."""
    rooms = {name: more.pop(name) for name in list(more) if name in _ROOMS}
    subject = {name: more.pop(name) for name in list(more) if name in _CONTROLLED}
    return Loop(
        Controlled(measurer=measurer, actuator=actuator, limits=limits, **subject),
        Rooms(policy=policy or FakePolicy(1), guards=guards, **rooms),
        clock=clock or FakeClock(),
        history=history or FakeHistory(),
        period_s=period_s,
        **more,
    )
