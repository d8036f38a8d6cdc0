"""The trial on YARN: `make test-yarn`."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from clusters import hadoop, trial, yarn
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
    assert trial.doctor(manager, tmp_path) in yarn.NODES
