"""The simulated cluster keeps what every port promises."""

import pytest

from contract.test_actuator_port import *  # noqa: F403
from contract.test_measurer_port import *  # noqa: F403
from penstock.sim.scenario import (
    BatchCost,
    ClusterSpec,
    OperatorSpec,
    Scenario,
    SourceSpec,
    Upstream,
)
from penstock.sim.service import ServiceTime
from penstock.sim.world import SimulatedWorld
from penstock.workloads.profiles import constant


def world(sharing):
    operators = (
        OperatorSpec("first", (Upstream("in"),), ServiceTime("exponential", 0.01)),
        OperatorSpec("second", (Upstream("first"),), ServiceTime("exponential", 0.01)),
    )
    return SimulatedWorld(
        Scenario(
            "ports", 60.0, 2.0, (SourceSpec("in", constant(40.0)),), operators,
            ClusterSpec(1, 1, 4, slots=2), sharing, BatchCost(0.3),
        )
    )  # fmt: skip


@pytest.fixture(params=["time", "space"])
def actuator(request):
    return world(request.param)


@pytest.fixture(params=["time", "space"])
def seen(request):
    simulated = world(request.param)
    observations = [simulated.observe()]
    for _ in range(4):
        simulated.wait_s(5.0)
        observations.append(simulated.observe())
    return observations


@pytest.fixture(params=["time", "space"])
def clock(request):
    return world(request.param)


def test_simulated_time_passes_by_what_was_waited(clock):
    assert clock.wait_s(0.25) is True
    assert clock.now_s() == 0.25
    assert clock.wait_s(-5) is True
    assert clock.now_s() == 0.25


def test_a_stopped_clock_refuses_to_wait(clock):
    clock.stop()
    assert clock.wait_s(1.0) is False
    assert clock.now_s() == 0.0
