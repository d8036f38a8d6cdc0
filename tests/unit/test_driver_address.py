"""Where a driver listens: on loopback only if its executors are there."""

import os
from collections.abc import Mapping

import pytest

from penstock.spark import handles
from penstock.spark.cluster import session
from penstock.spark.cluster.embedded import start_driver_jvm


@pytest.mark.parametrize(("host", "bound"), [("127.0.0.1", "127.0.0.1"), (None, None)])
def test_a_driver_for_executors_elsewhere_is_not_bound_to_loopback(
    monkeypatch: pytest.MonkeyPatch, host: str | None, bound: str | None
) -> None:
    started: list[Mapping[str, str]] = []
    monkeypatch.setattr(handles, "start_driver", started.append)
    monkeypatch.setenv("SPARK_LOCAL_IP", "")
    monkeypatch.delenv("SPARK_LOCAL_IP")
    start_driver_jvm({"spark.driver.host": host} if host else {"spark.master": "yarn"})
    assert len(started) == 1
    assert os.environ.get("SPARK_LOCAL_IP") == bound


@pytest.mark.parametrize(
    ("master", "facing"),
    [
        ("spark://127.0.0.1:7077", "127.0.0.1"),
        ("spark://127.0.0.1:7077,other:7077", "127.0.0.1"),
        ("spark://nowhere.invalid:7077", None),
        ("yarn", None),
        ("k8s://https://127.0.0.1:6443", None),
        ("local[2]", None),
    ],
)
def test_a_driver_has_the_address_that_its_master_sees(master: str, facing: str | None) -> None:
    assert session._address_facing(master) == facing
