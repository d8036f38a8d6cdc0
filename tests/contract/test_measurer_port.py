"""What every Measurer promises; MEASURERS gives, for each, a way to let a period pass and look."""

from collections.abc import Callable

import pytest

from contract.fakes import FakeMeasurer, observation, rich_observation
from contract.worlds import simulated_world
from penstock.model.observation import Observation

Look = Callable[[], Observation | None]


def _fake() -> Look:
    some = [None, observation(1000.0), observation(1005.0), rich_observation(1010.0)]
    return FakeMeasurer(some).observe


def _simulated(sharing: str) -> Look:
    world = simulated_world(sharing)

    def look() -> Observation | None:
        world.wait_s(5.0)
        return world.observe()

    return look


MEASURERS: dict[str, Callable[[], Look]] = {
    "fake": _fake,
    "simulated, together": lambda: _simulated("time"),
    "simulated, apart": lambda: _simulated("space"),
}


@pytest.fixture(params=MEASURERS)
def seen(request: pytest.FixtureRequest) -> list[Observation | None]:
    look = MEASURERS[request.param]()
    return [look() for _ in range(5)]


def test_it_answers_observations_or_none(seen: list[Observation | None]) -> None:
    assert any(o is not None for o in seen)
    assert all(o is None or isinstance(o, Observation) for o in seen)


def test_time_never_goes_back_and_periods_are_longer_than_nothing(
    seen: list[Observation | None],
) -> None:
    found = [o for o in seen if o is not None]
    assert [o.at_s for o in found] == sorted({o.at_s for o in found})
    assert all(o.period_s > 0 for o in found)


def test_names_are_unique_within_an_observation(seen: list[Observation | None]) -> None:
    for o in seen:
        if o is not None:
            for parts in (o.operators, o.components, o.nodes):
                names = [part.name for part in parts]
                assert len(names) == len(set(names))


def test_counts_are_never_negative(seen: list[Observation | None]) -> None:
    for o in seen:
        if o is not None:
            # NaN means not measured, and is not negative either.
            assert not o.arrival_rate_per_s < 0
            assert not o.backlog_rows < 0
            assert all(c.parallelism >= 0 and not c.busy_s < 0 for c in o.components)
