"""From the options to a policy."""

from dataclasses import replace

import pytest

from contract.fakes import (
    FakeActuator,
    FakeClock,
    FakeHistory,
    FakeMeasurer,
    FakePolicy,
    observation,
)
from penstock.config import Settings
from penstock.control.assembly import assemble_loop, rooms_for
from penstock.control.controlled import Controlled
from penstock.control.from_settings import policy_of
from penstock.errors import InvalidInput
from penstock.model.decision import Limits
from penstock.scaling.policies.incremental import Incremental
from penstock.scaling.policies.registry import names


@pytest.mark.parametrize("name", names())
def test_every_policy_can_be_chosen_by_its_name(name: str) -> None:
    assert policy_of(Settings(policy=name)).name == name


def test_the_options_of_a_policy_reach_it() -> None:
    settings = Settings(policy="incremental", policy_options={"min_ratio": 0.3, "max_ratio": 0.7})
    assert policy_of(settings) == Incremental(0.3, 0.7, step=settings.slots)


def test_an_unknown_policy_is_refused_with_the_known_ones() -> None:
    with pytest.raises(InvalidInput, match=r"policy is 'clever'; allowed: .*incremental.*static"):
        policy_of(Settings(policy="clever"))


def test_the_loop_keeps_what_its_policies_look_back_on() -> None:
    """Ten minutes of one-second periods, where sixty observations are kept unless asked."""
    settings = Settings(policy="static", period_s=1.0, shadow="autoscale")
    settings = replace(settings, policy_options={"window_s": 600.0})
    measurer = FakeMeasurer([observation(float(at)) for at in range(700)])
    subject = Controlled(measurer=measurer, actuator=FakeActuator(), limits=Limits(1, 4, 5.0))
    rooms = rooms_for(settings, subject)
    watching = FakePolicy(1)
    loop = assemble_loop(
        settings, subject, replace(rooms, policy=watching, foresight=None), clock=FakeClock(),
        history=FakeHistory(),
    )  # fmt: skip
    for _ in range(700):
        loop.step()
    window = watching.contexts[-1].window
    assert window[-1].at_s - window[0].at_s >= 600.0
