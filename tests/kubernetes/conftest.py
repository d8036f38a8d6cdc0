"""One cluster for all tests of this folder."""

from collections.abc import Iterator

import pytest

from kubernetes.cluster import Cluster, kubernetes_cluster, missing


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    if (reason := missing()) is not None:
        pytest.skip(reason)
    with kubernetes_cluster(tmp_path_factory.mktemp("kubernetes")) as running:
        yield running
