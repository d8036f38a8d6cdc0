"""The two-minute form: every kind of kill once, under a load by seed; nothing lost or twice."""

import os
from pathlib import Path

import pytest

from soak.runner import KINDS, Soak

pytestmark = pytest.mark.spark


def test_killed_in_every_way(tmp_path: Path) -> None:
    seed = int(os.environ.get("PENSTOCK_TEST_SEED", "7"))
    print(f"PENSTOCK_TEST_SEED={seed}")
    soak = Soak(tmp_path, seed, length_s=0.0)
    verdict = soak.run(end_s=0.0, pause_s=1.0)
    assert not verdict.faults
    assert verdict.rows > 1_000
    assert verdict.windows > 20
    assert set(soak.kills) == set(KINDS)
