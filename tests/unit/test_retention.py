"""A history that forgets: what goes, what stays, and that the room it takes has a bound."""

from pathlib import Path

import pytest

from contract.fakes import rich_observation
from penstock.control.actions import Outcome, SetExecutors
from penstock.control.history.retention import Retention, prune, used_bytes
from penstock.control.history.store import PRUNE_EVERY_S, HistoryStore, RunHistory
from penstock.control.records import ActionRecord, FailureRecord, RunRecord

HOUR_S = 3600.0
DAY_S = 24 * HOUR_S


def run(started_at_s: float) -> RunRecord:
    return RunRecord("road", "static", started_at_s, 5.0, 5.0)


def write(history: RunHistory, times_s: list[float]) -> None:
    for at_s in times_s:
        history.observed(rich_observation(at_s))
        history.acted(ActionRecord(at_s, Outcome(SetExecutors(2), True, "done", 1.0)))
    history.flush()


def seen(store: HistoryStore, number: int) -> list[float]:
    return [one.at_s for one in store.read_observations(number)]


def test_periods_go_whole_by_their_age(tmp_path: Path) -> None:
    with HistoryStore(str(tmp_path / "h.sqlite")) as store:
        history = store.begin(run(1000.0))
        write(history, [1000.0, 2000.0, 3000.0])
        gone = store.prune(Retention(age_s=1500.0), 4000.0)
        assert (gone.periods, gone.runs) == (2, 0)
        assert seen(store, history.run_id) == [3000.0]
        assert [one.at_s for one in store.read_actions(history.run_id)] == [3000.0]


def test_ended_runs_go_with_their_last_period_and_running_ones_stay(tmp_path: Path) -> None:
    with HistoryStore(str(tmp_path / "h.sqlite")) as store:
        ended, running = store.begin(run(1000.0)), store.begin(run(1000.0))
        write(ended, [1000.0])
        write(running, [1000.0, 3950.0])
        ended.end(1500.0)
        gone = store.prune(Retention(age_s=100.0), 4000.0)
        assert (gone.periods, gone.runs) == (2, 1)
        assert list(store.runs()) == [running.run_id]


def test_runs_that_were_killed_go_like_ended_ones(tmp_path: Path) -> None:
    """They have no end, and 400 of 400 stayed."""
    kept = Retention(age_s=30 * DAY_S)
    with HistoryStore(str(tmp_path / "h.sqlite")) as store:
        for day in range(100):
            killed = store.begin(run(1e9 + day * DAY_S), kept)
            write(killed, [1e9 + day * DAY_S])
        assert 30 <= len(store.runs()) <= 32
        young = store.begin(run(1e9 + 200 * DAY_S))
        store.prune(kept, 1e9 + 201 * DAY_S)
        assert list(store.runs()) == [young.run_id]


def test_a_run_that_was_silent_for_longer_than_anything_is_kept_goes_on(tmp_path: Path) -> None:
    with HistoryStore(str(tmp_path / "h.sqlite")) as store:
        silent = store.begin(run(1000.0))
        write(silent, [1000.0])
        store.prune(Retention(age_s=100.0), 4000.0)
        assert not store.runs()
        write(silent, [4000.0])
        silent.end(4005.0)
        assert store.runs()[silent.run_id].started_at_s == 1000.0
        assert store.runs()[silent.run_id].ended_at_s == 4005.0
        assert seen(store, silent.run_id) == [4000.0]


def test_the_run_of_who_forgets_stays_though_all_it_wrote_is_old(tmp_path: Path) -> None:
    with HistoryStore(str(tmp_path / "h.sqlite")) as store:
        history = store.begin(run(1000.0))
        prune(store._engine, Retention(age_s=100.0), 4000.0, writing=history.run_id)
        assert list(store.runs()) == [history.run_id]


@pytest.mark.parametrize("kept", [Retention(bytes=300_000), Retention(age_s=HOUR_S)])
def test_periods_that_only_fail_keep_to_age_and_size(tmp_path: Path, kept: Retention) -> None:
    """They never pruned: 5.8 MB where the limit was 0.3."""
    with HistoryStore(str(tmp_path / "h.sqlite")) as store:
        history = store.begin(run(1e9), kept)
        for hours in range(0, 60, 2):
            for second in range(200):
                failure = FailureRecord(1e9 + hours * HOUR_S + second, "observe", 200 * "x")
                history.failed(failure)
            history.flush()
            with store.reading() as connection:
                assert used_bytes(connection) < 1.5 * 300_000
        failures = store.read_failures(history.run_id)
        assert failures[-1] == failure
        assert len(failures) >= 200


def test_simulated_runs_do_not_age_by_the_clock_on_the_wall(tmp_path: Path) -> None:
    with HistoryStore(str(tmp_path / "h.sqlite")) as store:
        history = store.begin(run(0.0))
        write(history, [5.0, 10.0])
        assert store.prune(Retention(age_s=100.0), 1e9).periods == 0


@pytest.mark.parametrize("started_at_s", [0.0, 1e9])
def test_a_run_of_months_keeps_to_its_age(tmp_path: Path, started_at_s: float) -> None:
    with HistoryStore(str(tmp_path / "h.sqlite")) as store:
        history = store.begin(run(started_at_s), Retention(age_s=24 * HOUR_S))
        for hour in range(24 * 8):
            write(history, [started_at_s + hour * HOUR_S])
        kept = seen(store, history.run_id)
        assert kept[-1] == started_at_s + (24 * 8 - 1) * HOUR_S
        assert 24 <= len(kept) <= 24 + PRUNE_EVERY_S / HOUR_S + 1


def test_a_run_of_months_keeps_to_its_size_and_to_its_newest(tmp_path: Path) -> None:
    limit = 400_000
    with HistoryStore(str(tmp_path / "h.sqlite")) as store:
        history = store.begin(run(1e9), Retention(bytes=limit))
        for hour in range(400):
            write(history, [1e9 + hour * HOUR_S + second for second in range(0, 50, 5)])
            with store.reading() as connection:
                assert used_bytes(connection) < 1.5 * limit
        kept = seen(store, history.run_id)
        assert kept[-1] == 1e9 + 399 * HOUR_S + 45
        assert len(kept) > 100


def test_pruning_gives_the_room_back(tmp_path: Path) -> None:
    file = tmp_path / "h.sqlite"
    with HistoryStore(str(file)) as store:
        history = store.begin(run(1e9))
        write(history, [1e9 + 5 * number for number in range(2000)])
        history.end(2e9)
    with HistoryStore(str(file)) as store:
        before = file.stat().st_size
        store.prune(Retention(age_s=1.0), 3e9)
    assert file.stat().st_size < before / 5
