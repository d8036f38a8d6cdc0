"""The trial on several hosts, and what only happens between hosts: `make test-hosts`."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from clusters import hosts, trial
from clusters.hosts import Hosts
from clusters.manager import Manager

MISSING = hosts.missing()
pytestmark = [pytest.mark.spark, pytest.mark.skipif(MISSING is not None, reason=str(MISSING))]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Manager, Hosts]]:
    with hosts.cluster_of_hosts(tmp_path_factory.mktemp("hosts")) as running:
        yield running


@pytest.mark.parametrize("part", [trial.attached, trial.killed, trial.topology])
def test_the_trial(cluster: tuple[Manager, Hosts], tmp_path: Path, part: trial.Part) -> None:
    manager, _ = cluster
    trial.tell(manager, part, part(manager, tmp_path))
