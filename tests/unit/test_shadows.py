"""Shadow policies: they decide on what the acting policy sees, and only the history hears of it."""

from pathlib import Path
from typing import Any

from contract.fakes import (
    FakeActuator,
    FakeHistory,
    FakeMeasurer,
    FakePolicy,
    observation,
)
from contract.loops import loop_over
from penstock.config import Settings
from penstock.control.actions import SetExecutors
from penstock.control.from_settings import shadow_policies
from penstock.control.guards.limits import Bounds
from penstock.control.history.store import HistoryStore
from penstock.control.records import RunRecord
from penstock.model.decision import Limits


class Broken(FakePolicy):
    """A policy that fails."""

    def decide(self, context: Any) -> Any:
        raise ZeroDivisionError("no rate")


def test_a_shadow_decides_and_never_acts() -> None:
    actuator, history, shadow = FakeActuator(), FakeHistory(), FakePolicy(7)
    measured = FakeMeasurer([observation(1005.0), observation(1010.0)])
    loop = loop_over(
        measured, actuator, policy=FakePolicy(2), history=history, limits=Limits(1, 4, 5.0),
        guards=(Bounds(),), shadows=[shadow],
    )  # fmt: skip
    first = loop.step()
    loop.step()
    assert actuator.acted == [SetExecutors(2)]
    assert first.decision is not None
    assert not first.decision.shadow
    watched = [record for record in history.decisions if record.shadow]
    # From where the cluster really is, and within the bounds that hold for all.
    assert [(r.current.processors, r.decision.plan.processors) for r in watched] == [(1, 7), (2, 7)]
    assert [r.guarded.processors for r in watched] == [4, 4]


def test_a_shadow_that_fails_is_told_and_changes_nothing() -> None:
    actuator, history = FakeActuator(), FakeHistory()
    loop = loop_over(
        FakeMeasurer([observation(1005.0)]), actuator, policy=FakePolicy(2), history=history,
        limits=Limits(1, 4, 5.0), guards=(Bounds(),), shadows=[Broken(1)],
    )  # fmt: skip
    step = loop.step()
    assert actuator.acted == [SetExecutors(2)]
    (failure,) = step.failures
    assert (failure.stage, failure.message) == ("shadow fake", "ZeroDivisionError: no rate")


def test_the_history_keeps_shadows_apart(tmp_path: Path) -> None:
    edges = (("reports", "speeds"), ("speeds", "out"))
    begun = RunRecord(
        "road", "fake", 1000.0, 5.0, 5.0, executors_max=4, batch_interval_s=0.5, edges=edges
    )
    with HistoryStore(str(tmp_path / "h.sqlite")) as store:
        run = store.begin(begun)
        loop = loop_over(
            FakeMeasurer([observation(1005.0)]), FakeActuator(), policy=FakePolicy(2), history=run,
            limits=Limits(1, 4, 5.0), guards=(Bounds(),), shadows=[FakePolicy(3)],
        )  # fmt: skip
        loop.step()
        assert [r.guarded.processors for r in store.read_decisions(run.run_id)] == [2]
        assert [r.guarded.processors for r in store.read_shadows(run.run_id)] == [3]
        assert store.runs() == {run.run_id: begun}


def test_all_are_all_others_that_decide_something() -> None:
    names = {policy.name for policy in shadow_policies(Settings(policy="drs", shadow="all"))}
    assert {"incremental", "ds2", "spark-dra"} <= names
    assert names.isdisjoint({"drs", "static"})
