"""The scenario that tests of several commands simulate."""

from pathlib import Path

STEADY = '{ profile = "constant", rate_per_s = 40 }'
SCENARIO = """
[scenario]
name = "short"
duration = "90s"
max_latency = "5s"
seed = 3

[cluster]
max_executors = 4

[batch]
fixed = "250ms"

[[source]]
name = "reports"
rate = { profile = "constant", rate_per_s = 40 }

[[operator]]
name = "lookup"
from = ["reports"]
service = { mean = "40ms" }
"""


def write_scenario(folder: Path, text: str = SCENARIO, duration: str = "90s") -> Path:
    """A file of the scenario, of another length if it is given."""
    path = folder / "short.toml"
    path.write_text(text.replace('"90s"', f'"{duration}"'), encoding="utf-8")
    return path
