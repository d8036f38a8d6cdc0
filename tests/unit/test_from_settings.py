"""From the options to a policy."""

from dataclasses import replace
from typing import Any

import pytest

from contract.fakes import (
    FakeActuator,
    FakeClock,
    FakeHistory,
    FakeMeasurer,
    FakePolicy,
    observation,
)
from penstock.allocation.albic import AlbicOptions
from penstock.config import Settings
from penstock.control.assembly import assemble_loop, rooms_for
from penstock.control.controlled import Controlled
from penstock.control.from_settings import allocating_of, policy_of, proposal_rules_of
from penstock.errors import InvalidInput
from penstock.fusion.proposal import ProposalRules
from penstock.model.decision import Limits
from penstock.scaling.policies.incremental import Incremental
from penstock.scaling.policies.registry import names


@pytest.mark.parametrize("name", names())
def test_every_policy_can_be_chosen_by_its_name(name: str) -> None:
    assert policy_of(Settings(policy=name)).name == name


@pytest.mark.parametrize("name", ["drs", "promise"])
def test_a_trigger_longer_than_any_option_is_planned_with_as_the_longest(name: str) -> None:
    made: Any = policy_of(Settings(policy=name, batch_interval_s=86_400.0))
    assert made.trigger_interval_s == 3600.0


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


def test_how_proposals_to_fuse_are_priced_is_an_option() -> None:
    settings = Settings(fusion_beta=500.0, fusion_capacity=2000.0, fusion_tolerance=0.5)
    rules = proposal_rules_of(settings)
    assert (rules.beta, rules.capacity_rows, rules.tolerance) == (500.0, 2000.0, 0.5)
    assert proposal_rules_of(Settings()) == ProposalRules()


def test_the_options_of_albic_reach_it() -> None:
    settings = Settings(
        allocation="albic", albic_pairs=3, albic_distance=7.0, albic_partition_load=40.0,
        albic_partition_step=8.0,
    )  # fmt: skip
    allocating = allocating_of(settings)
    assert allocating is not None
    assert allocating.rules.albic == AlbicOptions(7.0, 40.0, 8.0, pairs_per_round=3)
    plain = allocating_of(Settings(allocation="albic"))
    assert plain is not None
    assert plain.rules.albic == AlbicOptions()
