"""From the options to a policy."""

import pytest

from penstock.allocation.albic import AlbicOptions
from penstock.config import Settings
from penstock.control.from_settings import allocating_of, policy_of, proposal_rules_of
from penstock.errors import InvalidInput
from penstock.fusion.proposal import ProposalRules
from penstock.scaling.policies.incremental import Incremental
from penstock.scaling.policies.registry import names


@pytest.mark.parametrize("name", names())
def test_every_policy_can_be_chosen_by_its_name(name: str) -> None:
    assert policy_of(Settings(policy=name)).name == name


def test_the_options_of_a_policy_reach_it() -> None:
    settings = Settings(policy_options={"min_ratio": 0.3, "max_ratio": 0.7})
    assert policy_of(settings) == Incremental(0.3, 0.7, step=settings.slots)


def test_an_unknown_policy_is_refused_with_the_known_ones() -> None:
    with pytest.raises(InvalidInput, match=r"policy is 'clever'; allowed: .*incremental.*static"):
        policy_of(Settings(policy="clever"))


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
