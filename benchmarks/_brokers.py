"""The servers that tests start, for benchmarks."""

import sys
from pathlib import Path

# Not a package of its own: what tests share is found by path there as well.
sys.path.append(str(Path(__file__).parents[1] / "tests"))

from brokers import redis_server

__all__ = ["redis_server"]
