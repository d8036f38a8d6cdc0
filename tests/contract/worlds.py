"""A small simulated world, to be held to the contracts of the ports."""

from typing import Any

from penstock.sim.scenario_file import scenario_of
from penstock.sim.world import SimulatedWorld


def simulated_world(sharing: str = "time", key_groups: int = 0) -> SimulatedWorld:
    """Two operators under an even load, with an executor that starts at once."""
    document: dict[str, Any] = {
        "scenario": {"name": "small", "duration": "1h", "max_latency": "5s", "sharing": sharing},
        "cluster": {"max_executors": 4, "slots": 2},
        "source": [{"name": "s", "rate": {"profile": "constant", "rate_per_s": 20}}],
        "operator": [
            {"name": "a", "from": ["s"], "service": {"mean": "10ms"}},
            {"name": "b", "from": ["a"], "service": {"mean": "20ms"}},
        ],
    }
    if key_groups:
        document["cluster"] |= {"key_groups": key_groups, "key_skew": 1, "executors": 2}
    return SimulatedWorld(scenario_of(document))
