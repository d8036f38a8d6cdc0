"""How many processors components that run apart may have, in all."""

import pytest

from penstock.config import Settings
from penstock.spark.run.controlled import processors_apart


@pytest.mark.parametrize(
    ("components", "fewest", "local", "limits"),
    [
        (3, 1, False, (3, 8)),  # each component has one, whatever the executors
        (3, 3, False, (6, 8)),  # the executors that were asked for are kept
        (9, 1, False, (9, 9)),
        (3, 3, True, (3, 3)),  # a local master has one executor, of two processors here
    ],
)
def test_the_least_is_what_components_need_and_what_was_asked_for(
    components: int, fewest: int, local: bool, limits: tuple[int, int]
) -> None:
    settings = Settings(executors_min=fewest, executors_max=4)
    assert processors_apart(settings, components, 2, local) == limits
