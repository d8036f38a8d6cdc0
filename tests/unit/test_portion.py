"""What a topology on a shared cluster sees: its part, as if nothing else were there."""

import math

import pytest

from contract.fakes import observation
from penstock.control.shared_cluster import PortionMeasurer, SharedCluster
from penstock.model.decision import Limits
from penstock.model.observation import BatchObservation, NodeObservation, Observation
from penstock.sharing.quotas import Quota


class Seen:
    """Five executors of two slots, and one batch of 5.2 s of work that one of them did alone."""

    def __init__(self, overhead_s: float) -> None:
        self._overhead_s = overhead_s

    def observe(self) -> Observation:
        nodes = tuple(NodeObservation(str(n), slots=2, busy_s=0.0) for n in range(5))
        return observation(nodes=nodes, batches=BatchObservation(1, 6.3, self._overhead_s, 520.0))


def portion(granted: int, overhead_s: float = 6.3 - 5.2 / 10) -> Observation:
    shared = SharedCluster(10, slots=2)
    shared.join("a", Limits(1, 10, 5.0), begins=granted)
    seen = PortionMeasurer("a", shared, Seen(overhead_s)).observe()
    assert seen is not None
    assert seen.processors == granted
    return seen


@pytest.mark.parametrize(("granted", "overhead_s"), [(1, 1.1), (2, 3.7), (10, 5.78)])
def test_work_is_not_taken_for_overhead_where_few_processors_shared_it(
    granted: int, overhead_s: float
) -> None:
    batches = portion(granted).batches
    assert batches is not None
    assert batches.mean_overhead_s == pytest.approx(overhead_s)
    assert batches.mean_duration_s == 6.3


@pytest.mark.parametrize("overhead_s", [math.nan, 6.3 - 7.0 / 10])
def test_what_was_not_measured_or_done_with_the_help_of_others_is_unknown(
    overhead_s: float,
) -> None:
    batches = portion(1, overhead_s).batches
    assert batches is not None
    assert math.isnan(batches.mean_overhead_s)


def test_idle_processors_of_others_may_be_used_unless_a_community_has_a_most() -> None:
    shared = SharedCluster(10, slots=2)
    shared.join("a", Limits(1, 10, 5.0), wanted=8)
    shared.join("b", Limits(1, 10, 5.0), wanted=8, community="b")
    shared.set_quotas({"b": Quota(most=2)})
    assert (shared.usable("a", 1), shared.usable("b", 1)) == (8, 1)
    shared.leave("a")
    assert shared.usable("a", 1) == 1


def test_in_a_shortage_what_is_left_goes_by_what_is_expected_and_not_by_what_is_feared() -> None:
    """Both promises are kept with four; one fears a load five times as high as it expects."""
    shared = SharedCluster(12)
    tight = {k: 20.0 / k for k in range(1, 13)}
    calm = {k: 8.0 / k for k in range(1, 13)}
    shared.join("fearful", Limits(1, 12, 5.0), wanted=12, expected_s=calm)
    shared.join("busy", Limits(1, 12, 5.0), wanted=8, expected_s=tight)
    given = shared.settle().plan.processors
    assert given == {"fearful": 4, "busy": 8}  # 7 and 5 where what is wanted decided
    assert shared.settle().plan.processors == given
