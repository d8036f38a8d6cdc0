"""Executors on Kubernetes whose pods are refused, or find no machine."""

from types import SimpleNamespace
from typing import Any

import pytest

from penstock.control.actions import SetExecutors
from penstock.spark import handles
from penstock.spark.act.executors import SparkExecutors, executor_settings


class Kubernetes:
    """A cluster with room for some executors; the rest is refused, or waits."""

    def __init__(self, room: int, quota: bool) -> None:
        self.room, self.quota = room, quota
        self.active, self.refused, self.lost = 1, 0, 0
        self.requested: list[int] = []
        self.sparkContext = SimpleNamespace(
            master="k8s://https://far:6443", getConf=lambda: executor_settings(1, 4)
        )

    def request(self, session: Any, total: int) -> None:
        self.requested.append(total)
        self.active = max(self.active, min(total - self.lost, self.room))
        self.refused += max(0, total - self.room) if self.quota else 0

    def executors(self, session: Any) -> list[Any]:
        return [SimpleNamespace(id=str(one), active=True) for one in range(self.active)]

    def trouble(self, session: Any) -> handles.PodTrouble:
        wanted = self.requested[-1] if self.requested else 1
        waiting = ("0/2 nodes are available",) if wanted > self.room and not self.quota else ()
        return handles.PodTrouble(self.refused, waiting, self.lost)


def executors(kubernetes: Kubernetes, monkeypatch: pytest.MonkeyPatch) -> SparkExecutors:
    for name, stands_for in {
        "request_total_executors": kubernetes.request, "executors": kubernetes.executors,
        "pod_trouble": kubernetes.trouble, "stop_allocation_manager": lambda session: True,
        "why_unavailable": lambda *asked: "",
    }.items():  # fmt: skip
        monkeypatch.setattr(handles, name, stands_for)
    session: Any = kubernetes
    return SparkExecutors(session, grow_limit_s=0.0)


@pytest.mark.parametrize(
    ("quota", "requested", "why"),
    [
        (True, [4, 2, 2], "(its API server refused pods, as a quota makes it do; "),
        (False, [4, 2], "(no more within 0 s: 0/2 nodes are available); "),
    ],
)
def test_what_is_not_given_is_withdrawn(
    quota: bool, requested: list[int], why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    kubernetes = Kubernetes(2, quota)
    actuator = executors(kubernetes, monkeypatch)
    outcome = actuator.act(SetExecutors(4))
    assert not outcome.done
    assert outcome.detail.startswith("The cluster gave 2 of 4 executors ")
    assert why in outcome.detail
    assert kubernetes.requested == requested
    assert actuator.executors() == 2

    again = actuator.act(SetExecutors(4))
    assert "more are asked for again in" in again.detail
    assert kubernetes.requested == requested, "and nothing was asked for"


def test_what_is_given_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    kubernetes = Kubernetes(3, True)
    assert executors(kubernetes, monkeypatch).act(SetExecutors(3)).done
    assert kubernetes.requested == [3]


def test_executors_of_a_lost_node_are_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    kubernetes = Kubernetes(3, False)
    actuator = executors(kubernetes, monkeypatch)
    assert actuator.act(SetExecutors(2)).done
    kubernetes.lost, kubernetes.active = 1, 1
    assert actuator.executors() == 2
    assert kubernetes.requested == [2, 3], "the lost one still counts for Spark"
    actuator.executors()
    assert kubernetes.requested == [2, 3]
    kubernetes.lost = 0
    kubernetes.active = 2
    assert actuator.executors() == 2
    assert kubernetes.requested == [2, 3, 2]
