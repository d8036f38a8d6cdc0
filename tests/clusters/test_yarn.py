"""The trial on YARN: `make test-yarn`."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from clusters import hadoop, trial, yarn
from clusters.driver import driver_environment
from clusters.manager import Manager

pytestmark = [
    pytest.mark.spark,
    pytest.mark.skipif(hadoop.missing() is not None, reason=str(hadoop.missing())),
]


@pytest.fixture(scope="module")
def manager(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Manager]:
    with yarn.yarn_cluster(tmp_path_factory.mktemp("yarn")) as running:
        yield running


@pytest.mark.parametrize("part", [trial.attached, trial.topology])
def test_the_trial(manager: Manager, tmp_path: Path, part: trial.Part) -> None:
    trial.tell(manager, part, part(manager, tmp_path))


def test_a_full_queue_is_a_cluster_that_gives_fewer(manager: Manager, tmp_path: Path) -> None:
    took = trial.fewer(manager, tmp_path, yarn.EXECUTORS_AT_MOST)
    print(f"\n{manager.name}, a full queue: {took}")


def test_the_doctor_says_what_works(manager: Manager, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "penstock", "doctor", "--master", "yarn", "--json"],
        env=driver_environment(tmp_path, manager), capture_output=True, text=True, check=False,
    )  # fmt: skip
    found = {one["name"]: one for one in json.loads(done.stdout)}
    assert found["act: the number of executors"]["found"] == "works", found
    assert found["act: where state lives"]["found"] == "works"
    assert found["python of executors"]["ok"]
    assert found["executor"]["found"].removeprefix("came on ") in yarn.NODES
