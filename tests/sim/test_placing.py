"""Key groups in the simulator: skew costs time, and the loop's allocation wins it back."""

from typing import Any

import numpy as np
import pytest

from penstock.config import Settings
from penstock.control.actions import Move, MoveKeyGroups, SetExecutors
from penstock.scaling.policies.static import Static
from penstock.sim.run import simulate
from penstock.sim.scenario_file import scenario_of
from penstock.sim.world import SimulatedWorld


def scenario(**cluster: Any) -> Any:
    return scenario_of(
        {
            "scenario": {"name": "skewed", "duration": "5m", "max_latency": "5s", "period": "10s"},
            "cluster": {
                "executors": 3, "max_executors": 4, "key_groups": 9, "key_skew": 1,
                "migration": "100ms", **cluster,
            },
            "source": [{"name": "s", "rate": {"profile": "constant", "rate_per_s": 100}}],
            "operator": [{"name": "a", "from": ["s"], "service": {"mean": "15ms"}}],
        }
    )  # fmt: skip


def test_an_uneven_placement_makes_batches_longer() -> None:
    world = SimulatedWorld(scenario())
    world.wait_s(30)
    world.observe()
    moves = tuple(Move("a", group, "node-0") for group in range(9))
    assert world.act(MoveKeyGroups(moves)).done
    world.wait_s(30)
    seen = world.observe()
    assert seen is not None
    assert seen.components[0].key_groups is not None
    assert set(seen.components[0].key_groups.node.tolist()) == {"node-0"}
    assert seen.backlog_rows > 500  # one of three nodes does all the work, and is too slow


def test_key_groups_of_a_drained_node_find_another() -> None:
    world = SimulatedWorld(scenario())
    world.wait_s(10)
    assert world.act(SetExecutors(2, leaving=("node-0",))).done
    world.wait_s(20)
    seen = world.observe()
    assert seen is not None
    assert seen.components[0].key_groups is not None
    assert set(seen.components[0].key_groups.node.tolist()) <= {"node-1", "node-2"}


@pytest.mark.parametrize("policy", ["milp", "flux"])
def test_the_loop_balances(policy: str) -> None:
    still = simulate(scenario(), Static(), settings=Settings(allocation=None))
    placed = simulate(
        scenario(), Static(), settings=Settings(allocation=policy, allocation_tolerance=5.0)
    )
    moved = [step.moved for step in placed.steps if step.moved is not None]
    assert moved
    assert all(outcome.done for outcome in moved)
    late = [
        np.mean([s.observation.batches.mean_duration_s for s in run.steps[-5:]
                 if s.observation is not None and s.observation.batches is not None])
        for run in (still, placed)
    ]  # fmt: skip
    assert late[1] < 0.9 * late[0]
