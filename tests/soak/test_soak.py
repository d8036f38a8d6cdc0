"""The short form: thirty faults of every quick kind and a kill of the driver; all is compared."""

import os
from pathlib import Path

import pytest

from soak.faults import FAULTS
from soak.leg import Leg

pytestmark = pytest.mark.spark

FAULTS_IN_ALL = 30
WITHOUT_DRIVER = {
    kind
    for kind, fault in FAULTS.items()
    if not fault.ends and not kind.startswith(("driver killed", "damaged"))
}


def test_thirty_faults_lose_nothing(tmp_path: Path) -> None:
    seed = int(os.environ.get("PENSTOCK_TEST_SEED", "7"))
    print(f"PENSTOCK_TEST_SEED={seed}")
    leg = Leg(
        tmp_path, "fused", seed, length_s=300.0, batches=1, longest_stop_s=1.0, mean_per_s=10.0
    )
    verdict = leg.run(FAULTS_IN_ALL, pause_s=0.3, kinds=WITHOUT_DRIVER)
    assert not verdict.faults
    assert not leg.leaks
    assert verdict.rows > 1_000
    assert verdict.windows > 20
    assert len(leg.injected) == FAULTS_IN_ALL
    done = {one.kind for one in leg.injected}
    assert done >= {kind for kind in WITHOUT_DRIVER if FAULTS[kind].possible(leg)}
