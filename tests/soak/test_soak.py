"""The short form: thirty faults, rounds of every quick kind and a kill of the driver."""

import os
from pathlib import Path

import pytest

from soak.faults import FAULTS
from soak.leg import Leg

pytestmark = pytest.mark.spark

WITHOUT_DRIVER = {
    kind
    for kind, fault in FAULTS.items()
    if not fault.ends and not kind.startswith(("driver killed", "damaged"))
}
MOST = 30


def test_faults_lose_nothing(tmp_path: Path) -> None:
    seed = int(os.environ.get("PENSTOCK_TEST_SEED", "7"))
    print(f"PENSTOCK_TEST_SEED={seed}")
    # Rows for much longer than it takes: on a slow machine too, every fault is to meet some.
    leg = Leg(
        tmp_path, "fused", seed, length_s=1800.0, batches=1, longest_stop_s=1.0, mean_per_s=5.0
    )
    possible = {kind for kind in WITHOUT_DRIVER if FAULTS[kind].possible(leg)}
    verdict = leg.run(MOST, spread_s=0.3, kinds=WITHOUT_DRIVER)
    assert not verdict.faults
    assert not leg.leaks
    assert verdict.rows > 500
    assert verdict.windows > 10
    assert len(leg.injected) == MOST
    done = {one.kind for one in leg.injected}
    assert done >= possible
