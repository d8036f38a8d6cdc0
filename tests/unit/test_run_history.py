"""The record of a run on Spark: it ends with the run, and never makes a run fail at its end."""

from contextlib import ExitStack
from pathlib import Path

import pytest
from sqlalchemy.exc import OperationalError

from penstock.config import Settings
from penstock.control.history.store import HistoryStore, RunHistory
from penstock.spark.run.history import begin_history


def test_a_run_that_ends_is_recorded_as_ended(tmp_path: Path) -> None:
    with HistoryStore(str(tmp_path / "h.sqlite")) as store:
        with ExitStack() as resources:
            begun = begin_history(
                store, Settings(), resources, name="road", max_latency_s=5.0, share=0.9, slots=1
            )
            assert store.runs()[begun.run_id].share == 0.9
            assert store.runs()[begun.run_id].ended_at_s is None
        assert store.runs()[begun.run_id].ended_at_s is not None


def test_a_history_that_is_away_at_the_end_is_said_and_no_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def away(history: RunHistory, at_s: float) -> None:
        raise OperationalError("UPDATE runs", {}, Exception("disk I/O error"))

    monkeypatch.setattr(RunHistory, "end", away)
    with HistoryStore(str(tmp_path / "h.sqlite")) as store, ExitStack() as resources:
        promise = {"max_latency_s": 5.0, "share": 0.99}
        begin_history(store, Settings(), resources, name="road", slots=1, **promise)
    assert "the end of the run could not be recorded in the history" in caplog.text
