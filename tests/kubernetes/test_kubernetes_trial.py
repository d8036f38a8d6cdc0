"""The trial of every cluster manager on Kubernetes: `make test-kubernetes`."""

from pathlib import Path

import pytest

from clusters import trial
from kubernetes.cluster import Cluster

pytestmark = pytest.mark.spark


@pytest.mark.parametrize("part", [trial.attached, trial.topology])
def test_the_trial(cluster: Cluster, tmp_path: Path, part: trial.Part) -> None:
    trial.tell(cluster.manager, part, part(cluster.manager, tmp_path))
    logs = [tmp_path / "stderr.txt", *tmp_path.glob("*.log")]
    said = "".join(one.read_text(errors="replace") for one in logs if one.exists())
    assert "Forbidden" not in said, "the role of deploy/kubernetes lacks something"


def test_the_doctor_says_what_works(cluster: Cluster, tmp_path: Path) -> None:
    assert cluster.agent.node_at(trial.doctor(cluster.manager, tmp_path))
