"""A cluster that gives fewer executors than it is asked for, without Spark."""

from types import SimpleNamespace
from typing import Any

import pytest

from penstock.control.actions import SetExecutors
from penstock.spark.act import executors as acting
from penstock.spark.act.executors import SparkExecutors


class Cluster:
    """A cluster with room for so many executors, and what it was asked for."""

    def __init__(self, room: int) -> None:
        self.room, self.asked = room, [1]

    def executors(self, _: object) -> tuple[Any, ...]:
        given = min(self.room, self.asked[-1])
        return tuple(SimpleNamespace(id=str(number), active=True) for number in range(given))

    def request(self, _: object, total: int) -> None:
        self.asked.append(total)


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Cluster:
    made = Cluster(room=3)
    monkeypatch.setattr(acting.handles, "executors", made.executors)
    monkeypatch.setattr(acting.handles, "request_total_executors", made.request)
    monkeypatch.setattr(acting.handles, "why_unavailable", lambda *_: "")
    monkeypatch.setattr(acting.handles, "stop_allocation_manager", lambda _: False)
    return made


def session(instances: int) -> Any:
    settings = {"spark.executor.cores": "1", "spark.executor.instances": str(instances)}
    conf = SimpleNamespace(get=lambda key, default=None: settings.get(key, default))
    return SimpleNamespace(sparkContext=SimpleNamespace(getConf=lambda: conf, master="yarn"))


def test_executors_that_dynamic_allocation_gave_back_before_it_was_stopped_are_asked_for(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(acting.handles, "stop_allocation_manager", lambda _: True)
    actuator = SparkExecutors(session(instances=2))
    assert len(cluster.executors(None)) == 1
    actuator.take_over()
    assert actuator.executors() == len(cluster.executors(None)) == 2


def test_it_is_said_and_no_more_is_asked_for_until_a_while_has_passed(cluster: Cluster) -> None:
    actuator = SparkExecutors(session(instances=1), grow_limit_s=-1.0)

    short = actuator.act(SetExecutors(5))
    assert not short.done
    assert "gave 3 of 5 executors" in short.detail
    assert cluster.asked == [1, 5, 3], "what was given stays, the rest is withdrawn"

    again = actuator.act(SetExecutors(4))
    assert not again.done
    assert "gave 3 of 5 executors 0 s ago; more are asked for again in" in again.detail
    assert cluster.asked == [1, 5, 3], "nothing was asked for"
