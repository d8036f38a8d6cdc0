"""From the options to a policy."""

import pytest

from penstock.config import Settings
from penstock.control.chosen import chosen_policy
from penstock.errors import InvalidInput
from penstock.scaling.policies.incremental import Incremental
from penstock.scaling.policies.registry import names


@pytest.mark.parametrize("name", names())
def test_every_policy_can_be_chosen_by_its_name(name: str) -> None:
    assert chosen_policy(Settings(policy=name)).name == name


def test_thresholds_reach_the_policy_they_are_for() -> None:
    settings = Settings(threshold_min=0.3, threshold_max=0.7)
    assert chosen_policy(settings) == Incremental(0.3, 0.7, step=settings.slots)


def test_an_unknown_policy_is_refused_with_the_known_ones() -> None:
    with pytest.raises(InvalidInput, match=r"policy is 'clever'; known: .*incremental.*static"):
        chosen_policy(Settings(policy="clever"))
