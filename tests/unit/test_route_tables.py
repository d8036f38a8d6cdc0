"""Decisions taken in a source's runner reach the history once, with their reasons."""

from pathlib import Path

import numpy as np

from contract.fakes import observation
from penstock.control.history.store import HistoryStore
from penstock.control.records import RunRecord
from penstock.model.decision import RoomDecision
from penstock.model.observation import RouteObservation
from penstock.spark.measure.route_tables import RouteTableReporter
from penstock.spark.routes.exchange import RouteExchange


def test_a_table_of_routes_is_told_when_it_comes_into_use(tmp_path: Path) -> None:
    exchange = RouteExchange(tmp_path / "reports")
    exchange.prepare()
    first = exchange.write_table({"tasks": 4, "reasons": []})
    second = exchange.write_table({"tasks": 6, "reasons": ["key 7 is split in 3"]})
    reporter = RouteTableReporter(tmp_path, {"reports": "frequency-aware"})

    def seen(version: str) -> list[RouteObservation]:
        return [RouteObservation("reports", np.array([1.0, 3.0]), np.array([1, 3]), version)]

    assert reporter.take(seen(first), 5.0) == ()
    (decision,) = reporter.take(seen(second), 10.0)
    assert (decision.at_s, decision.room, decision.policy) == (10.0, "routing", "frequency-aware")
    assert decision.what == "reports: routes by table 1"
    assert decision.numbers == {"tasks": 6.0, "load ratio": 0.5}
    assert decision.reasons == ("key 7 is split in 3",)
    assert reporter.take(seen(second), 15.0) == ()
    assert reporter.take(seen("00000009-gone"), 20.0) == ()


def test_the_history_keeps_what_was_decided_elsewhere(tmp_path: Path) -> None:
    decided = RoomDecision(
        1004.0, "routing", "osg", "reports: routes by table 7", {"tasks": 9.0}, ("full",), "no room"
    )
    with HistoryStore(str(tmp_path / "h.sqlite")) as store:
        run = store.begin(RunRecord("road", "static", 1000.0, 5.0, 5.0))
        run.observed(observation(1005.0, decided=(decided,)))
        run.observed(observation(1010.0))
        run.flush()
        assert store.read_room_decisions(run.run_id) == [decided]
